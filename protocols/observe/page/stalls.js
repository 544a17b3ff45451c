// The last stalls, each with the functions in which its thread was. They are fetched when the count
// of stalls has grown.

const stalls = { count: -1, isWanted: true };

function stallLine(stall) {
  const where = stall.thread !== undefined ? `thread ${stall.thread}` : `pool ${stall.pool}, runner ${stall.runner}`;
  const what = stall.behaviour ? `${stall.behaviour}, ${stall.type || "no message"}` : "in no actor";
  return `${stall.when}: ${where}, ${time(stall.length_ns)}, ${what}`;
}

function showStalls(all) {
  $("stalls-part").hidden = all.length === 0;
  $("stalls").replaceChildren(...all.map((stall) => element("details", "",
    element("summary", "", stallLine(stall)),
    element("ol", "", ...(stall.backtrace || []).map((each) => element("li", "", each))))));
}

async function lookForStalls() {
  const count = total("stalls", store.count - 1);
  if (count === stalls.count || !stalls.isWanted) return;
  stalls.count = count;
  const found = await fetchJson("/stalls");
  stalls.isWanted = found !== null;
  if (found) showStalls([...found.stalls].sort((a, b) => b.when_ns - a.when_ns));
}
