// Where the page has its groups from: they are packed in it. Ids are percent-encoded: HTML has no way to write NUL.
let fields = null;
function unpacked(value) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(unpacked);
  const [[kind, row]] = Object.entries(value);
  return Object.fromEntries(row.map((each, index) => [fields[kind][index], unpacked(each)]));
}

async function unpackText(element) {
  const bytes = Uint8Array.from(atob(element.textContent), (each) => each.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

async function unpackChunk(packed) {
  fields ??= JSON.parse(await unpackText(byId("fields")));
  return JSON.parse(await unpackText(packed));
}

let everything = null;
const source = {
  async group(id) {
    for (const packed of document.querySelectorAll("script[data-groups]")) {
      const index = packed.dataset.groups.split(" ").map(decodeURIComponent).indexOf(id);
      if (index >= 0) return unpacked((await unpackChunk(packed))[index]);
    }
    return null;
  },
  overview: async () => JSON.parse(await unpackText(byId("overview-data"))),
  // All groups that have a page, unpacked once.
  all() {
    everything ??= Promise.all([...document.querySelectorAll("script[data-groups]")].map(unpackChunk)).then((chunks) => chunks.flat().map(unpacked));
    return everything;
  },
};
