// The map of the length of iterations: a column for each sample, a row for each place of the
// histogram, and the darker, the more iterations were so long.

const HEAT_LEAST = 1024; // ns; shorter ones are in the lowest row

const heat = { drawnTo: 0, context: null };

// The row of a place: 0 is the top, and each place has a row, up to a second.
function heatRow(place, height) {
  const lowest = store.names.bounds.findIndex((bound) => bound >= HEAT_LEAST);
  return Math.min(height - 1, Math.max(0, height - 1 - (place - lowest)));
}

function heatGrown(place, from, to) {
  const width = store.names.bounds.length;
  return store.heat[slot(to) * width + place] - store.heat[slot(from) * width + place];
}

function drawHeatColumns(image, begin) {
  const { width, height, data } = image;
  const rows = store.names.bounds.map((_, place) => heatRow(place, height));
  const counts = new Float64Array(height);
  for (let x = 0; x < width; x++) {
    const index = begin + x;
    counts.fill(0);
    if (index >= 1 && index > store.count - HISTORY && index < store.count) {
      rows.forEach((row, place) => { counts[row] += Math.max(0, heatGrown(place, index - 1, index)); });
    }
    let all = 0;
    for (let y = 0; y < height; y++) all += counts[y];
    for (let y = 0; y < height; y++) {
      const part = counts[y] > 0 ? 0.25 + 0.75 * Math.sqrt(counts[y] / all) : 0;
      const at = (y * width + x) * 4;
      for (let i = 0; i < 3; i++) data[at + i] = strips.paper[i] + part * (strips.heat[i] - strips.paper[i]);
      data[at + 3] = 255;
    }
  }
}

function drawHeat() {
  if (!store.hasHeat) return;
  const canvas = $("heat-map");
  if (!heat.context) heat.context = canvas.getContext("2d", { willReadFrequently: true, alpha: false });
  const end = viewEnd();
  const fresh = heat.drawnTo === 0 || heat.drawnTo > end ? VIEW : Math.min(VIEW, end - heat.drawnTo);
  if (fresh === 0) return;
  const image = heat.context.createImageData(fresh, canvas.height);
  drawHeatColumns(image, end - fresh);
  if (fresh < VIEW) heat.context.drawImage(canvas, -fresh, 0);
  heat.context.putImageData(image, VIEW - fresh, 0);
  heat.drawnTo = end;
}

// The length that a share of the iterations of the span does not exceed.
function heatQuantile(share, from, to) {
  const counts = store.names.bounds.map((_, place) => Math.max(0, heatGrown(place, from, to)));
  const all = counts.reduce((a, b) => a + b, 0);
  let sum = 0;
  for (let place = 0; place < counts.length; place++) {
    sum += counts[place];
    if (all > 0 && sum >= share * all) return store.names.bounds[Math.min(place + 1, counts.length - 1)];
  }
  return 0;
}

function tellHeat() {
  $("heat").hidden = !store.hasHeat;
  $("heat-hint").hidden = store.hasHeat;
  if (!store.hasHeat) return;
  const [from, to] = span();
  const words = [["half", 0.5], ["99 %", 0.99], ["99.9 %", 0.999]]
    .map(([name, share]) => `${name} up to ${time(heatQuantile(share, from, to))}`).join(", ");
  say($("heat-words"), "Of the iterations " + words + ".");
  $("heat-map").setAttribute("aria-label", "Length of iterations over time. Of the iterations " + words);
}

function redrawHeat() {
  heat.drawnTo = 0;
  drawHeat();
}

function startHeat() {
  dragChooses($("heat-map"), plotPlace);
  $("heat-begin").addEventListener("click", () => changeLevel("histograms"));
  onView(() => { drawHeat(); tellHeat(); });
}
