// A client of @grpc/grpc-js judges examples/grpc: node judge.js PORT NOTES.PROTO. Each case prints its name, and
// the status is 0 if all hold. `./dev run grpc` has to serve at the port; the packages are installed beside this file.
const assert = require("assert");
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const [port, proto] = process.argv.slice(2);
const definition = loader.loadSync(proto, {longs: Number, defaults: true, keepCase: true});
const {notes} = grpc.loadPackageDefinition(definition);
const open = (options) => new notes.Notes(`127.0.0.1:${port}`, grpc.credentials.createInsecure(),
  {"grpc.max_receive_message_length": 16 << 20, ...options});
const client = open({});
const status = grpc.status;

// Asks, and resolves to what came: the message or the error, the metadata and the status.
function ask(method, message, {metadata = new grpc.Metadata(), options = {}, on = client} = {}) {
  return new Promise((done) => {
    const seen = {};
    const call = on[method](message, metadata, options, (error, answer) => { seen.error = error; seen.answer = answer; });
    call.on("metadata", (m) => { seen.metadata = m; });
    call.on("status", (s) => { seen.status = s; setImmediate(() => done(seen)); });
    seen.call = call;
  });
}

// Reads a stream to its end.
function drain(call, each = () => 0) {
  return new Promise((done) => {
    const got = [];
    let error = null;
    call.on("data", (m) => { got.push(m); each(m, got.length); });
    call.on("error", (e) => { error = e; });
    call.on("status", (s) => setImmediate(() => done({got, error, status: s})));
  });
}

const cases = {
  async "unary"() {
    const seen = await ask("Say", {text: "hello"});
    assert.strictEqual(seen.answer.text, "hello");
    assert.strictEqual(seen.status.code, status.OK);
  },
  async "server streaming"() {
    const {got, status: end} = await drain(client.Count({number: 1000}));
    assert.deepStrictEqual(got.map((m) => m.number), Array.from({length: 1000}, (_, i) => i + 1));
    assert.strictEqual(end.code, status.OK);
  },
  async "server streaming of nothing"() {
    const {got, status: end} = await drain(client.Count({number: 0}));
    assert(got.length === 0 && end.code === status.OK);
  },
  async "client streaming"() {
    const sum = await new Promise((good, bad) => {
      const call = client.Sum((error, answer) => error ? bad(error) : good(answer.number));
      for (let i = 1; i <= 1000; i++) call.write({number: i});
      call.end();
    });
    assert.strictEqual(sum, 500500);
  },
  async "bidirectional, in turn"() {
    const call = client.Chat();
    const all = drain(call, (m, n) => n < 100 ? call.write({text: `note ${n}`}) : call.end());
    call.write({text: "note 0"});
    const {got, status: end} = await all;
    assert(got.length === 100 && got[99].place === 100 && got[99].text === "note 99" && end.code === status.OK);
  },
  async "bidirectional, at a time"() {
    const call = client.Chat();
    const all = drain(call);
    for (let i = 0; i < 5000; i++) call.write({text: "x".repeat(100)});
    call.end();
    assert.strictEqual((await all).got.length, 5000);
  },
  async "errors"() {
    const seen = await ask("Say", {text: ""});
    assert.strictEqual(seen.error.code, status.INVALID_ARGUMENT);
    assert.strictEqual(seen.error.details, "Say something: 100% \u00fc");
  },
  async "unknown method"() {
    const seen = await new Promise((done) => client.makeUnaryRequest("/notes.Notes/None", (b) => b, (b) => b,
      Buffer.alloc(0), (error) => done(error)));
    assert.strictEqual(seen.code, status.UNIMPLEMENTED);
    assert(seen.details.includes("/notes.Notes/None"));
  },
  async "deadline"() {
    const begun = Date.now();
    const seen = await ask("Say", {text: "late", delay_ms: 5000}, {options: {deadline: Date.now() + 200}});
    assert.strictEqual(seen.error.code, status.DEADLINE_EXCEEDED);
    assert(Date.now() - begun < 1500);
  },
  async "deadline of a stream"() {
    const {got, error} = await drain(client.Count({number: 1000, delay_ms: 20}, {deadline: Date.now() + 300}));
    assert(error.code === status.DEADLINE_EXCEEDED && got.length > 2 && got.length < 30, `${got.length}`);
  },
  async "cancel"() {
    const call = client.Count({number: 1000000, delay_ms: 1});
    const {got, error} = await drain(call, (m, n) => { if (n === 10) call.cancel(); });
    assert(error.code === status.CANCELLED && got.length < 100);
  },
  async "cancel of a unary call"() {
    const pending = new Promise((done) => {
      const call = client.Say({text: "x", delay_ms: 60000}, (error) => done(error));
      setTimeout(() => call.cancel(), 50);
    });
    assert.strictEqual((await pending).code, status.CANCELLED);
  },
  async "metadata"() {
    const metadata = new grpc.Metadata();
    metadata.set("x-echo", "one two");
    metadata.set("x-echo-bin", Buffer.from([0, 1, 2, 253, 254, 255]));
    const seen = await ask("Say", {text: "hello"}, {metadata});
    assert.deepStrictEqual(seen.metadata.get("x-echo"), ["one two"]);
    assert.deepStrictEqual(seen.status.metadata.get("x-echo-bin"), [Buffer.from([0, 1, 2, 253, 254, 255])]);
  },
  async "big message"() {
    const text = "big ".repeat(1 << 19); // 2 MiB
    const seen = await ask("Say", {text});
    assert(seen.answer && seen.answer.text === text, seen.error);
  },
  async "too big message"() {
    const seen = await ask("Say", {text: "big ".repeat(1100000)});
    assert.strictEqual(seen.error.code, status.RESOURCE_EXHAUSTED);
  },
  async "compression"() {
    const on = open({"grpc.default_compression_algorithm": 2});
    const text = "compressed ".repeat(10000);
    const seen = await ask("Say", {text}, {on});
    assert.strictEqual(seen.answer && seen.answer.text, text);
    const call = on.Chat();
    const all = drain(call);
    for (let i = 0; i < 50; i++) call.write({text});
    call.end();
    const {got} = await all;
    assert(got.length === 50 && got.every((m) => m.text === text));
    on.close();
  },
  async "bomb"() {
    const on = open({"grpc.default_compression_algorithm": 2});
    const seen = await ask("Say", {text: "0".repeat(8 << 20)}, {on});
    assert.strictEqual(seen.error.code, status.RESOURCE_EXHAUSTED);
    on.close();
  },
  async "unknown compression"() {
    const on = open({"grpc.default_compression_algorithm": 1}); // deflate
    const seen = await ask("Say", {text: "x"}, {on});
    assert.strictEqual(seen.error.code, status.UNIMPLEMENTED);
    on.close();
  },
  async "health"() {
    const check = (name) => new Promise((done) => client.makeUnaryRequest("/grpc.health.v1.Health/Check", (b) => b,
      (b) => b, Buffer.concat([Buffer.from([10, name.length]), Buffer.from(name)]), (error, b) => done(error || b)));
    assert.deepStrictEqual([...await check("")], [8, 1]);
    assert.deepStrictEqual([...await check("notes.Notes")], [8, 1]);
    assert.strictEqual((await check("notes.None")).code, status.NOT_FOUND);
  },
  async "1000 calls at a time"() {
    const seen = await Promise.all(Array.from({length: 1000}, (_, i) => ask("Say", {text: `n${i}`, delay_ms: 20})));
    seen.forEach((s, i) => assert.strictEqual(s.answer && s.answer.text, `n${i}`, s.error));
  },
  async "1000 streams at a time"() {
    const seen = await Promise.all(Array.from({length: 1000}, () => drain(client.Count({number: 20}))));
    seen.forEach((s) => assert.strictEqual(s.got.length, 20));
  },
};

(async () => {
  let failed = 0;
  for (const [name, hold] of Object.entries(cases)) {
    try {
      let timer;
      await Promise.race([hold(), new Promise((_, bad) => { timer = setTimeout(() => bad(new Error("too late")), 30000); })]);
      clearTimeout(timer);
      console.log(`holds: ${name}`);
    } catch (error) {
      failed++;
      console.log(`FAILS: ${name}: ${error.message.split("\n").slice(0, 6).join(" ")}`);
    }
  }
  client.close();
  process.exit(failed === 0 ? 0 : 1);
})();
