// The page begins here: what is done with the names, with each sample, and now and then.

const TELL_EVERY = 4; // samples: figures and tables change once a second

function begin(names) {
  if (store.names && JSON.stringify(names) === JSON.stringify(store.names)) return; // only the stream was lost
  setFrozen(false);
  storeNames(names);
  say($("program"), names.program);
  document.title = names.program + " - domus";
  $("level").replaceChildren(...names.levels.map((level) => element("option", "", level)));
  Object.assign(stalls, { count: -1, isWanted: true });
  beside.isWanted = true;
  doctor.told = null;
  beginSets();
  makeStrips();
  makeTables();
  makeCharts();
  heat.drawnTo = 0;
}

function take(sample) {
  storeSample(sample, hasRoom());
  showLevel();
  if (store.count < 2) return;
  if (isFrozen()) return;
  setState("live", false);
  drawStrips();
  drawHeat();
  if (store.count % TELL_EVERY === 0 || store.count < TELL_EVERY) requestAnimationFrame(tell);
}

// Say all figures of the span. Parts of it have frames of their own, so that none takes long.
function tell() {
  say($("about"), `process ${store.names.pid}, ${store.threads} threads`);
  showSpan();
  tellStrips();
  tellRates();
  tellHeat();
  requestAnimationFrame(tellTables);
  setTimeout(drawCharts);
  void lookForStalls();
  void askDoctor();
  void lookBeside();
  void lookAtSets();
}

function startPage() {
  startView();
  startStrips();
  startHeat();
  startRates();
  startStream();
  onView(() => {
    if (isFrozen()) setState("frozen", false);
    tellStrips();
    tellTables();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    if (!store.names) return;
    readColours();
    redrawStrips();
    redrawHeat();
    makeCharts();
  });
  const threads = Number(new URLSearchParams(location.search).get("demo"));
  if (threads > 0) demoRun(Math.min(threads, 1024));
  else connect();
}

startPage();
