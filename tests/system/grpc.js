// A client of gRPC by node's own http2, without a library of gRPC: node grpc.js PORT. Each case of the
// list says what is sent and what has to come back, byte by byte. The status is 0 if all hold.
const assert = require("assert");
const http2 = require("http2");
const zlib = require("zlib");

const session = http2.connect(`http://127.0.0.1:${process.argv[2]}`, {maxSessionMemory: 100});
session.on("error", (e) => { throw e; });

function frame(message, packed = 0) {
  const head = Buffer.alloc(5);
  head[0] = packed;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function number(field, value) {
  const bytes = [field << 3];
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push(128 | value % 128);
  return Buffer.from([...bytes, value]);
}

function note(text) {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from([10]), number(0, bytes.length).subarray(1), bytes]);
}

// Asks, and resolves to the head, the messages, the trailers and the code of the stream.
function ask(path, body, {fields = {}, end = true, each} = {}) {
  return new Promise((good) => {
    const got = {head: {}, trailers: {}, bytes: Buffer.alloc(0), messages: []};
    const stream = session.request({":method": "POST", ":path": path, "content-type": "application/grpc",
      te: "trailers", ...fields});
    stream.on("response", (head) => { got.head = head; });
    stream.on("trailers", (trailers) => { got.trailers = trailers; });
    stream.on("data", (data) => {
      got.bytes = Buffer.concat([got.bytes, data]);
      while (got.bytes.length >= 5 && got.bytes.length >= 5 + got.bytes.readUInt32BE(1)) {
        const size = 5 + got.bytes.readUInt32BE(1);
        const message = got.bytes.subarray(5, size);
        got.messages.push(got.bytes[0] === 1 ? zlib.gunzipSync(message) : message);
        got.bytes = got.bytes.subarray(size);
        if (each) each(stream, got.messages.length);
      }
    });
    stream.on("error", () => 0);
    stream.on("close", () => good({...got, code: stream.rstCode,
      status: got.trailers["grpc-status"] || got.head["grpc-status"]}));
    if (end) stream.end(body); else stream.write(body);
  });
}

const SAY = "/notes.Notes/Say";
const COUNT = "/notes.Notes/Count";

const cases = {
  async "unary"() {
    const got = await ask(SAY, frame(note("hello")));
    assert(got.head[":status"] === 200 && got.head["content-type"] === "application/grpc");
    assert(got.messages[0].equals(note("hello")) && got.status === "0" && got.trailers["grpc-status"] === "0");
  },
  async "an error is the only head"() {
    const got = await ask(SAY, frame(Buffer.alloc(0)));
    assert(got.head["grpc-status"] === "3" && got.messages.length === 0);
    assert(decodeURIComponent(got.head["grpc-message"]) === "Say something: 100% \u00fc");
  },
  async "server streaming"() {
    const got = await ask(COUNT, frame(number(1, 300)));
    assert(got.messages.length === 300 && got.messages[299].equals(number(1, 300)) && got.status === "0");
  },
  async "client streaming"() {
    const body = Buffer.concat(Array.from({length: 100}, (_, i) => frame(number(1, i + 1))));
    const got = await ask("/notes.Notes/Sum", body);
    assert(got.messages[0].equals(number(1, 5050)) && got.status === "0");
  },
  async "bidirectional"() {
    const got = await ask("/notes.Notes/Chat", frame(note("a")), {end: false,
      each: (stream, n) => n < 10 ? stream.write(frame(note("a"))) : stream.end()});
    assert(got.messages.length === 10 && got.status === "0");
    assert(got.messages[9].equals(Buffer.concat([note("a"), number(3, 10)])));
  },
  async "deadline"() {
    const body = frame(Buffer.concat([note("late"), number(2, 20000)]));
    const got = await ask(SAY, body, {fields: {"grpc-timeout": "100m"}});
    assert(got.status === "4");
  },
  async "cancel"() {
    const got = await ask(COUNT, frame(Buffer.concat([number(1, 1000000), number(2, 1)])),
      {each: (stream, n) => { if (n === 5) stream.close(http2.constants.NGHTTP2_CANCEL); }});
    assert(got.messages.length < 1000 && got.status === undefined);
  },
  async "metadata"() {
    const got = await ask(SAY, frame(note("x")), {fields: {"x-echo": "a b", "x-echo-bin": "AAEC/w=="}});
    assert(got.head["x-echo"] === "a b" && got.trailers["x-echo-bin"] === "AAEC/w==");
  },
  async "compression"() {
    const text = note("packed ".repeat(10000));
    const got = await ask(SAY, frame(zlib.gzipSync(text), 1),
      {fields: {"grpc-encoding": "gzip", "grpc-accept-encoding": "identity,gzip"}});
    assert(got.messages[0].equals(text) && got.head["grpc-encoding"] === "gzip");
  },
  async "messages have a bound"() {
    const got = await ask(SAY, frame(note("x".repeat(4 << 20))));
    assert(got.status === "8");
    const bomb = await ask(SAY, frame(zlib.gzipSync(Buffer.alloc(64 << 20)), 1), {fields: {"grpc-encoding": "gzip"}});
    assert(bomb.status === "8");
  },
  async "what is unknown"() {
    const path = await ask("/notes.Notes/None", frame(note("x")));
    assert(path.status === "12");
    const encoding = await ask(SAY, frame(note("x")), {fields: {"grpc-encoding": "br"}});
    assert(encoding.status === "12" && encoding.head["grpc-accept-encoding"] === "identity, gzip");
    const type = await ask(SAY, frame(note("x")), {fields: {"content-type": "application/json"}});
    assert(type.head[":status"] === 415);
  },
  async "1000 calls at a time"() {
    const all = await Promise.all(Array.from({length: 1000}, (_, i) => ask(SAY, frame(note(`n${i}`)))));
    all.forEach((got, i) => assert(got.status === "0" && got.messages[0].equals(note(`n${i}`)), `${i}`));
  },
};

(async () => {
  for (const [name, hold] of Object.entries(cases)) {
    try {
      await hold();
    } catch (error) {
      console.log(`${name}: ${error.message}`);
      process.exit(1);
    }
  }
  session.close();
})();
