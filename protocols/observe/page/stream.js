// Where samples come from: the stream /live, and what is fetched beside it.

const LOST_MS = 3000; // after which a page that has lost its program asks again

const stream = { source: null, lostAt: 0 };

function setState(text, isLost) {
  say($("state"), text);
  $("state").classList.toggle("lost", isLost);
}

function connect() {
  const source = new EventSource("/live");
  stream.source = source;
  source.addEventListener("names", (event) => begin(JSON.parse(event.data)));
  source.addEventListener("sample", (event) => {
    if (store.names) take(JSON.parse(event.data));
  });
  source.addEventListener("error", () => {
    setState("lost; the page asks again", true);
    if (source.readyState !== EventSource.CLOSED) return; // the browser connects by itself
    setTimeout(connect, LOST_MS);
  });
}

// The JSON at a path; null if there is no such path, or no answer.
async function fetchJson(path) {
  if (demo.isOn) return demo.answer(path);
  try {
    const answer = await fetch(path, { cache: "no-store" });
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

async function changeLevel(level) {
  if (demo.isOn) {
    demo.level = store.names.levels.indexOf(level);
    return;
  }
  let words = "no answer";
  try {
    const answer = await fetch("/profile?level=" + encodeURIComponent(level), { method: "POST" });
    if (answer.ok) return;
    words = String(answer.status);
  } catch { /* said below */ }
  setState(`the level stays (${words})`, true);
  showLevel();
}

function showLevel() {
  if (document.activeElement !== $("level")) $("level").selectedIndex = store.level;
}

function startStream() {
  $("level").addEventListener("change", () => {
    const level = $("level").value;
    $("level").blur(); // from now on it shows what the program has
    void changeLevel(level);
  });
}
