import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.SupportedVersionRange;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;

/** The features of a cluster; compiles with each release from 3.9 on. */
final class Features {
    private Features() { }

    /** Raises every feature to the newest level that this broker supports; the others depend on metadata.version. */
    static void raise(Admin admin, ObjectNode answer) throws Exception {
        var known = admin.describeFeatures().featureMetadata().get();
        List<Map.Entry<String, SupportedVersionRange>> features = new ArrayList<>(known.supportedFeatures().entrySet());
        features.sort(Comparator.comparing(each -> !each.getKey().equals("metadata.version")));
        for (var feature : features) {
            var finalized = known.finalizedFeatures().get(feature.getKey());
            short wanted = feature.getValue().maxVersion();
            if (feature.getKey().equals("kraft.version") || finalized != null && finalized.maxVersionLevel() >= wanted
                    || wanted == 0) {
                continue;
            }
            var update = new FeatureUpdate(wanted, FeatureUpdate.UpgradeType.UPGRADE);
            admin.updateFeatures(Map.of(feature.getKey(), update), new UpdateFeaturesOptions()).all().get();
            answer.put(feature.getKey(), wanted);
        }
    }
}
