%% The rows in which processes do nothing but send: pingpong, counting, fjthrput, threadring,
%% mailbox.
%%
%% All processes have their queues off their heaps, so that no sender needs the heap of another:
%% that is up to a fifth faster for all of these.
-module(savina_talk).
-export([pingpong/1, counting/1, fjthrput/1, threadring/1, mailbox/1]).

-define(COUNT_WINDOW, 1000).
-define(FORK_ACTORS, 60).
-define(FORK_WINDOW, 100).
-define(RING_NODES, 100).
-define(SENDERS, 20).
-define(MAILBOX_WINDOW, 500).

start(Fun) ->
    spawn_opt(Fun, [{message_queue_data, off_heap}]).

%% ---- pingpong -----------------------------------------------------------------------------------

pingpong(Size) ->
    Main = self(),
    start(fun() ->
        Self = self(),
        Pong = start(fun() -> pong(Self) end),
        Count = ping(Pong, 0, Size),
        exit(Pong, kill),
        Main ! {pings, Count}
    end),
    receive {pings, Count} -> Count end.

ping(_, Size, Size) ->
    Size;
ping(Pong, Count, Size) ->
    Pong ! Count,
    receive
        Count -> ping(Pong, Count + 1, Size);
        _ -> exit({wrong, "a ball"})
    end.

pong(Ping) ->
    receive
        Ball ->
            Ping ! Ball,
            pong(Ping)
    end.

%% ---- counting -----------------------------------------------------------------------------------

counting(Size) ->
    Main = self(),
    start(fun() -> Main ! {counted, produce(Size)} end),
    receive {counted, Count} -> Count end.

produce(Size) ->
    Self = self(),
    Counter = start(fun() -> counter(Self, 0, ?COUNT_WINDOW, ?COUNT_WINDOW) end),
    Windows = Size div ?COUNT_WINDOW,
    First = min(2, Windows),
    send_many(Counter, First * ?COUNT_WINDOW),
    produce_more(Counter, Windows - First),
    [receive so_far -> ok end || _ <- lists:seq(1, First)],
    Counter ! get,
    receive Count -> Count end.

produce_more(_, 0) ->
    ok;
produce_more(Counter, Left) ->
    receive
        so_far ->
            send_many(Counter, ?COUNT_WINDOW),
            produce_more(Counter, Left - 1)
    end.

send_many(_, 0) ->
    ok;
send_many(To, Left) ->
    To ! increment,
    send_many(To, Left - 1).

%% Of counting and of fjthrput: acknowledges each Window-th.
counter(Producer, Count, 0, Window) ->
    Producer ! so_far,
    counter(Producer, Count, Window, Window);
counter(Producer, Count, Left, Window) ->
    receive
        increment -> counter(Producer, Count + 1, Left - 1, Window);
        get -> Producer ! Count
    end.

%% ---- fjthrput -----------------------------------------------------------------------------------

fjthrput(Size) ->
    Main = self(),
    start(fun() -> Main ! {forked, fork(Size)} end),
    receive {forked, Sum} -> Sum end.

fork(Size) ->
    Self = self(),
    Counters = [start(fun() -> counter(Self, 0, ?FORK_WINDOW, ?FORK_WINDOW) end)
                || _ <- lists:seq(1, ?FORK_ACTORS)],
    fork_windows(Counters, Size div ?FORK_WINDOW),
    [Counter ! get || Counter <- Counters],
    lists:sum([receive Count -> Count end || _ <- Counters]).

fork_windows(_, 0) ->
    ok;
fork_windows(Counters, Left) ->
    fork_window(Counters, ?FORK_WINDOW),
    await_all(?FORK_ACTORS),
    fork_windows(Counters, Left - 1).

fork_window(_, 0) ->
    ok;
fork_window(Counters, Left) ->
    send_each(Counters),
    fork_window(Counters, Left - 1).

send_each([]) ->
    ok;
send_each([Counter | Rest]) ->
    Counter ! increment,
    send_each(Rest).

await_all(0) -> ok;
await_all(Left) -> receive so_far -> await_all(Left - 1) end.

%% ---- threadring ---------------------------------------------------------------------------------

%% Each is spawned with the next; the first learns the last.
threadring(Size) ->
    Main = self(),
    First = start(fun() -> receive {next, Next} -> node_loop(Next, 0, Main) end end),
    Nodes = ring(?RING_NODES - 1, First, Main, [First]),
    First ! {next, hd(Nodes)},
    First ! Size,
    Index = receive {ended_at, Place} -> Place end,
    [exit(Node, kill) || Node <- Nodes],
    Index.

ring(0, _, _, Nodes) ->
    Nodes;
ring(Index, Next, Main, Nodes) ->
    Node = start(fun() -> node_loop(Next, Index, Main) end),
    ring(Index - 1, Node, Main, [Node | Nodes]).

%% A token is the number of passes that are left to it.
node_loop(Next, Index, Main) ->
    receive
        0 -> Main ! {ended_at, Index};
        Left -> Next ! Left - 1
    end,
    node_loop(Next, Index, Main).

%% ---- mailbox ------------------------------------------------------------------------------------

mailbox(Size) ->
    Main = self(),
    start(fun() ->
        Self = self(),
        [start(fun() -> sender(Self, Size div ?SENDERS) end) || _ <- lists:seq(1, ?SENDERS)],
        Main ! {received, receiver(0, Size)}
    end),
    receive {received, Count} -> Count end.

receiver(Size, Size) ->
    Size;
receiver(Count, Size) ->
    receive
        increment ->
            receiver(Count + 1, Size);
        Sender ->
            Sender ! ack,
            receiver(Count + 1, Size)
    end.

%% The last message of a window is another: it names its sender.
sender(_, 0) ->
    ok;
sender(Receiver, Left) ->
    send_many(Receiver, ?MAILBOX_WINDOW - 1),
    Receiver ! self(),
    receive ack -> sender(Receiver, Left - ?MAILBOX_WINDOW) end.
