"""Changes of one record of a real log that no coordinator, and no client of Kafka's, would make.

The catalogue is by what is changed, not by the rule that notices it: see ``rules.mutations`` for those.
"""

from tests.core.audit.classic_mutations import CLASSIC_MUTATIONS
from tests.core.audit.epoch_mutations import EPOCH_MUTATIONS

RECORD_MUTATIONS = (*EPOCH_MUTATIONS, *CLASSIC_MUTATIONS)
