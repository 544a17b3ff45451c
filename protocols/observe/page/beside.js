// Figures that the stream does not have: listeners, who helps whom, and which sets of tables there are.
// They are fetched from /profile now and then, if the program has them there.

const BESIDE_MS = 4000;

const beside = { at: -BESIDE_MS, isWanted: true };

function takeBeside(profile) {
  const listeners = (profile.listeners || []).map((each) => [each.listener, each.name, each.accepted, each.open, each.refused || 0]);
  const pairs = (profile.pairs || []).map((each) => [each.thief, each.victim, each.steals, each.stand_ins]);
  beside.isWanted = profile.listeners !== undefined || profile.pairs !== undefined || profile.sets !== undefined;
  store.rows.listeners.take(listeners, store.count);
  store.rows.pairs.take(pairs, store.count);
  takeSets(profile.sets || []);
}

async function lookBeside() {
  if (demo.isOn || !beside.isWanted || document.hidden || performance.now() - beside.at < BESIDE_MS) return;
  beside.at = performance.now();
  const names = store.names;
  const profile = await fetchJson("/profile");
  if (profile && names === store.names) takeBeside(profile); // else another program has begun meanwhile
}
