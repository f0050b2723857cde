// Where the served page has its groups from: it asks the server that it came from.
async function ask(question, parts) {
  const given = Object.entries(parts).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const answer = await fetch(`api/${question}?${new URLSearchParams(given)}`);
  const value = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(value.error), { status: answer.status });
  return value;
}

const source = {
  isServed: true,
  async group(id) {
    try { return await ask("group", { group: id, since: asked().get("since"), until: asked().get("until") }); }
    catch (error) { if (error.status === 404) return null; throw error; }
  },
  settings: (id, time) => ask("settings", { group: id, at: iso(time) }),
  overview: () => ask("overview", {}),
  // A group that was not there yet had committed nothing.
  async offsets(id, time) {
    try { return await ask("offsets", { group: id, at: iso(time) }); }
    catch (error) { if (error.status === 404) return []; throw error; }
  },
};
