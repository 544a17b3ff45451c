// What is looked at: the end of the view, which stands still while it is frozen, and the span of
// time whose figures the tables show.

const FOLLOWED = 40; // samples of the span while none is chosen: 10 s

const view = { frozenAt: 0, chosen: null, listeners: [] };

// The sample behind the last one that is shown.
function viewEnd() {
  return view.frozenAt || store.count;
}

function isFrozen() {
  return view.frozenAt !== 0;
}

// While the view is frozen, samples are kept as long as those of the view are.
function hasRoom() {
  return !isFrozen() || store.count + 1 < view.frozenAt - Math.min(VIEW, view.frozenAt) + HISTORY;
}

function onView(listener) {
  view.listeners.push(listener);
}

function viewChanged() {
  const frozen = isFrozen();
  $("freeze").setAttribute("aria-pressed", String(frozen));
  $("axis-end").textContent = frozen ? "frozen" : "now";
  $("span-clear").disabled = !frozen;
  for (const listener of view.listeners) listener();
}

function setFrozen(frozen) {
  if (!store.names || store.count < 2) return;
  view.frozenAt = frozen ? store.count : 0;
  if (!frozen) view.chosen = null;
  viewChanged();
}

// The two samples between which figures are made.
function span() {
  const end = viewEnd();
  const oldest = Math.max(0, end - VIEW, store.count - HISTORY);
  if (!view.chosen) return [Math.max(oldest, end - 1 - FOLLOWED), end - 1];
  return [Math.max(oldest, view.chosen[0]), Math.max(oldest + 1, view.chosen[1])];
}

// Choose a span by columns of the view, which freezes it.
function choose(fromColumn, toColumn) {
  if (!store.names || store.count < 3) return;
  if (!isFrozen()) view.frozenAt = store.count;
  const begin = view.frozenAt - VIEW;
  const least = Math.max(0, begin);
  const clamp = (index) => Math.min(view.frozenAt - 1, Math.max(least, index));
  const from = clamp(begin + Math.min(fromColumn, toColumn));
  const to = clamp(begin + Math.max(fromColumn, toColumn));
  view.chosen = from < to ? [from, to] : [Math.max(least, to - 1), Math.max(least + 1, to)];
  viewChanged();
}

// The columns of the span in the view.
function spanColumns() {
  const begin = viewEnd() - VIEW;
  return span().map((index) => index - begin);
}

// Dragging over an element chooses a span: `place` tells where its plot begins and how wide it is.
function dragChooses(node, place) {
  let begun = null;
  const column = (event) => {
    const { left, width } = place();
    return Math.round(((event.clientX - left) / width) * VIEW);
  };
  node.addEventListener("pointerdown", (event) => {
    if (event.button === 0) begun = column(event);
  });
  node.addEventListener("pointermove", (event) => {
    if (begun === null || Math.abs(column(event) - begun) < 3) return;
    if (!node.hasPointerCapture(event.pointerId)) node.setPointerCapture(event.pointerId);
    choose(begun, column(event));
  });
  for (const name of ["pointerup", "pointercancel"]) node.addEventListener(name, () => { begun = null; });
}

function startView() {
  const from = $("span-from");
  const to = $("span-to");
  const column = (input) => VIEW - 1 + Math.round((Number(input.value) * 1000) / store.names.interval_ms);
  const chooseByInputs = () => choose(column(from), column(to));
  $("freeze").addEventListener("click", () => setFrozen(!isFrozen()));
  $("span-clear").addEventListener("click", () => setFrozen(false));
  from.addEventListener("input", chooseByInputs);
  to.addEventListener("input", chooseByInputs);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") setFrozen(false);
    if (event.key !== " " || event.target.closest("button, select, summary, a")) return;
    event.preventDefault(); // or the page would scroll
    setFrozen(!isFrozen());
  });
  onView(showSpan);
}

function showSpan() {
  const [from, to] = span();
  const end = viewEnd() - 1;
  const [before, after] = [secondsBetween(end, from), secondsBetween(end, to)];
  if (view.chosen) say($("span-words"), `${seconds(after - before)}, from ${seconds(before)} to ${seconds(after)}`);
  else say($("span-words"), `the last ${seconds(Math.round(after - before))}`);
  if (document.activeElement !== $("span-from")) $("span-from").value = before;
  if (document.activeElement !== $("span-to")) $("span-to").value = after;
}
