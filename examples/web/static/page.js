// The page of the example web. All that others have written, such as lines of the chat and values
// of keys, is put into the page as text, never as HTML.
"use strict";

const $ = (id) => document.getElementById(id);

function onSubmit(id, act) {
  $(id).addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await act(event.submitter ? event.submitter.value : "");
    } catch (error) {
      const output = $(id + "-answer");
      if (output) output.textContent = "no answer: " + error.message;
    }
  });
}

// --- /events

const events = new EventSource("/events");
events.addEventListener("rate", (event) => {
  $("events-state").textContent = "live";
  $("requests").textContent = JSON.parse(event.data).requests.toLocaleString("en");
});
events.addEventListener("error", () => {
  $("events-state").textContent = "lost; it comes back when the server does";
});

// --- /kv/KEY

onSubmit("keys", async (method) => {
  const options = { method, cache: "no-store" };
  if (method === "PUT") options.body = $("value").value;
  const answer = await fetch("/kv/" + encodeURIComponent($("key").value), options);
  const text = await answer.text();
  $("keys-answer").textContent = answer.status + " " + (text || answer.statusText);
});

// --- /echo
//
// Browsers read an answer when they have sent the whole body. So they can only send what fits into
// the buffers on the way back; curl reads meanwhile, and can send any size.

onSubmit("echo", async (which) => {
  const body = which === "large" ? "0123456789".repeat(10000) : $("body").value;
  const begun = performance.now();
  const answer = await fetch("/echo", { method: "POST", body });
  const text = await answer.text();
  const took = Math.round(performance.now() - begun);
  const verdict = text === body ? "the same" : "something else";
  $("echo-answer").textContent =
    `${answer.status} ${verdict}: ${text.length} characters in ${took} ms` +
    (which === "large" ? "" : "\n" + text);
});

// --- /json

onSubmit("json", async () => {
  const answer = await fetch("/json", { cache: "no-store" });
  $("json-answer").textContent = JSON.stringify(await answer.json(), null, 1);
});

// --- /socket: the chat

let socket = null;
const LINES_MAX = 200;

// Bounds of socket.c, in bytes.
const NAME_MAX = 32;
const TEXT_MAX = 473;

function isTooLong(text, bytesMax) {
  const tooLong = new TextEncoder().encode(text).length > bytesMax;
  if (tooLong) $("chat-state").textContent = "that is too long";
  return tooLong;
}

function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

function showLine(text) {
  const lines = $("lines");
  lines.append(element("div", "", text));
  if (lines.children.length > LINES_MAX) lines.firstChild.remove();
  lines.scrollTop = lines.scrollHeight;
}

onSubmit("join", () => {
  if (isTooLong($("name").value, NAME_MAX)) return;
  if (socket) socket.close();
  const query = new URLSearchParams({ room: $("room").value, name: $("name").value });
  const scheme = location.protocol === "https:" ? "wss://" : "ws://";
  const joined = new WebSocket(scheme + location.host + "/socket?" + query);
  const room = $("room").value;
  socket = joined;
  $("lines").replaceChildren();
  $("chat-state").textContent = "joining " + room;
  joined.addEventListener("open", () => {
    $("chat-state").textContent = "in " + room;
  });
  joined.addEventListener("message", (event) => showLine(event.data));
  joined.addEventListener("close", (event) => {
    if (socket !== joined) return;
    socket = null;
    $("chat-state").textContent = "not joined" + (event.code > 1000 ? " (" + event.code + ")" : "");
  });
});

onSubmit("say", () => {
  if (!socket || socket.readyState !== WebSocket.OPEN) {
    $("chat-state").textContent = "join a room first";
    return;
  }
  if (isTooLong($("text").value, TEXT_MAX)) return;
  socket.send($("text").value);
  $("text").value = "";
});
