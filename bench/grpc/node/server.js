// The method Say of examples/grpc on the server of @grpc/grpc-js: node server.js NOTES.PROTO. It prints its port.
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const {notes} = grpc.loadPackageDefinition(loader.loadSync(process.argv[2], {longs: Number, defaults: true}));
const server = new grpc.Server();

server.addService(notes.Notes.service, {
  Say: (call, answer) => call.request.text === ""
    ? answer({code: grpc.status.INVALID_ARGUMENT, details: "Say something"})
    : answer(null, {text: call.request.text}),
});
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(port);
});
