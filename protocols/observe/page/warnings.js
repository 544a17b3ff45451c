// What a reader should look at, in the words of the doctor: the page asks /doctor again and again, as
// long as somebody looks at it.

const DOCTOR_SECONDS = 5; // for which the doctor looks each time
const DOCTOR_AGAIN_MS = 5000; // after an answer that is none

const doctor = { isAsking: false, at: -DOCTOR_AGAIN_MS, told: null };

// The lines of a finding for its change: those of YAML, and what to change elsewhere.
function changeLines(finding) {
  return finding.change.map((line) => line.replace(/^# /, "")).join("\n");
}

function findingItem(finding) {
  return element("li", "alarm", element("span", "", `${finding.sentence} `),
    element("span", "soft", `${finding.limit} `), element("code", "change", changeLines(finding)));
}

// Each change of the list is read out by a screen reader, so the list changes only with its rules.
function tellFindings(findings) {
  const told = findings.map((finding) => finding.rule).join() || "nothing";
  const list = $("warnings");
  if (told === doctor.told) {
    findings.forEach((finding, i) => {
      say(list.children[i].firstChild, `${finding.sentence} `);
      say(list.children[i].lastChild, changeLines(finding));
    });
    return;
  }
  doctor.told = told;
  list.replaceChildren(...findings.map(findingItem));
  if (findings.length === 0) list.append(element("li", "soft", "Nothing stands out."));
}

function tellNoDoctor() {
  if (doctor.told !== null) return;
  $("warnings").replaceChildren(element("li", "soft", "The doctor has not answered yet."));
}

// What was told holds no more if the doctor does not answer again.
function tellNoAnswer() {
  doctor.told = null;
  $("warnings").replaceChildren(element("li", "soft", "The doctor does not answer."));
}

async function askDoctor() {
  if (doctor.isAsking || document.hidden || isFrozen() || performance.now() - doctor.at < DOCTOR_AGAIN_MS) return;
  doctor.isAsking = true;
  tellNoDoctor();
  const names = store.names;
  const found = await fetchJson(`/doctor?seconds=${DOCTOR_SECONDS}&format=json`);
  doctor.isAsking = false;
  doctor.at = found ? -DOCTOR_AGAIN_MS : performance.now();
  if (names !== store.names || isFrozen()) return;
  if (found) tellFindings(found.findings);
  else tellNoAnswer();
}
