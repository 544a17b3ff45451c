// A strip for each thread: a column for each sample, in which each phase has its share of the
// height. A new sample moves the picture by a column and draws that one alone; a strip that is out
// of sight is drawn when it comes into sight.

// From the bottom up: work first; sleep is the paper behind it.
const ORDER = ["state", "channels", "events", "completions", "submit", "other"];
const STRIP_HEIGHT = 24;
const LEAST_SHOWN = 0.1; // of a row: more than that is seen
const FRAME_MS = 6; // the most time in a frame for strips that come into sight

const strips = { each: [], colours: null, watcher: null };

// The colours of the page as they lie in the memory of a picture.
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colour = (name) => {
    probe.fillStyle = style.getPropertyValue("--" + name).trim();
    probe.fillRect(0, 0, 1, 1);
    return new Uint32Array(probe.getImageData(0, 0, 1, 1).data.buffer)[0];
  };
  strips.colours = ORDER.map(colour);
  strips.sleep = colour("sleep");
  strips.heat = probeBytes(colour("heat"));
  strips.paper = probeBytes(strips.sleep);
}

function probeBytes(colour) {
  return [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];
}

// Draw the columns of some samples into a picture of that width.
function drawColumns(pixels, width, thread, begin) {
  const order = ORDER.map((name) => store.names.phases.indexOf(name));
  pixels.fill(strips.sleep);
  for (let x = 0; x < width; x++) {
    const index = begin + x;
    if (index < 1 || index <= store.count - HISTORY || index >= store.count) continue;
    const parts = shares(thread, index - 1, index);
    let sum = 0;
    let row = STRIP_HEIGHT;
    for (let i = 0; i < order.length; i++) {
      sum += parts[order[i]];
      const top = STRIP_HEIGHT - Math.ceil(sum * STRIP_HEIGHT - LEAST_SHOWN);
      while (row > top) pixels[--row * width + x] = strips.colours[i];
    }
  }
}

function drawStrip(strip, thread) {
  const end = viewEnd();
  const fresh = strip.drawnTo === 0 ? VIEW : Math.min(VIEW, end - strip.drawnTo);
  if (fresh > 0) {
    const image = strip.context.createImageData(fresh, STRIP_HEIGHT);
    drawColumns(new Uint32Array(image.data.buffer), fresh, thread, end - fresh);
    if (fresh < VIEW) strip.context.drawImage(strip.canvas, -fresh, 0);
    strip.context.putImageData(image, VIEW - fresh, 0);
  }
  strip.drawnTo = end;
}

// Draw what is in sight and not yet drawn; the rest of it in the next frame.
function drawStrips() {
  const begun = performance.now();
  for (let i = 0; i < strips.each.length; i++) {
    const strip = strips.each[i];
    if (!strip.isSeen || strip.drawnTo === viewEnd()) continue;
    if (strip.drawnTo > viewEnd()) strip.drawnTo = 0;
    if (performance.now() - begun > FRAME_MS) {
      requestAnimationFrame(drawStrips);
      return;
    }
    drawStrip(strip, i);
  }
}

function redrawStrips() {
  for (const strip of strips.each) strip.drawnTo = 0;
  drawStrips();
}

// The figures beside the strips, and their text for those who do not see them.
function tellStrips() {
  const [from, to] = span();
  strips.each.forEach((strip, thread) => {
    if (!strip.isSeen) return;
    const parts = shares(thread, from, to);
    const busy = 1 - parts[store.names.phases.indexOf("sleep")];
    say(strip.busy, percent(busy));
    const words = store.names.phases.map((name, i) => `${name} ${percent(parts[i])}`).join(", ");
    strip.canvas.setAttribute("aria-label", `Thread ${thread}: busy ${percent(busy)}. ${words}`);
  });
}

function makeStrip(thread) {
  const canvas = document.createElement("canvas");
  canvas.width = VIEW;
  canvas.height = STRIP_HEIGHT;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Thread ${thread}`);
  const busy = element("span", "busy");
  const node = element("div", "thread", element("span", "name", String(thread)), canvas, busy);
  const strip = { node, canvas, busy, isSeen: false, drawnTo: 0,
    context: canvas.getContext("2d", { willReadFrequently: true, alpha: false }) };
  strips.watcher.observe(node);
  return strip;
}

function makeStrips() {
  if (strips.watcher) strips.watcher.disconnect();
  strips.watcher = new IntersectionObserver((changes) => {
    for (const change of changes) {
      const strip = strips.each.find((each) => each.node === change.target);
      if (strip) strip.isSeen = change.isIntersecting;
    }
    requestAnimationFrame(drawStrips);
  }, { rootMargin: "120px" });
  strips.each = Array.from({ length: store.threads }, (_, thread) => makeStrip(thread));
  strips.chosen = element("div", "chosen");
  $("strips").classList.toggle("many", store.threads > 8);
  $("strips").replaceChildren(...strips.each.map((strip) => strip.node), strips.chosen);
  readColours();
}

// Where the plot of the strips is; all plots of this form lie in the same columns.
function plotPlace() {
  return strips.each[0].canvas.getBoundingClientRect();
}

function showChosen() {
  const mark = strips.chosen;
  mark.hidden = !view.chosen;
  if (!view.chosen) return;
  const canvas = strips.each[0].canvas;
  const [from, to] = spanColumns();
  mark.style.left = canvas.offsetLeft + (from / VIEW) * canvas.offsetWidth + "px";
  mark.style.width = ((to - from) / VIEW) * canvas.offsetWidth + "px";
  mark.style.top = "0";
  mark.style.bottom = "0";
}

function startStrips() {
  for (const name of [...ORDER, "sleep"]) {
    $("legend").append(element("li", "", element("i", name === "state" ? "state-phase" : name), name));
  }
  dragChooses($("strips"), plotPlace);
  onView(() => { drawStrips(); showChosen(); });
  window.addEventListener("resize", () => strips.each.length && showChosen());
}
