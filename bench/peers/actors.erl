%% The rows of bench/actors.c and bench/ring.c on Erlang/OTP (Debian's erlang-base, with its JIT).
%%
%% erl -noshell +S T:T -pa DIR -run actors main ROW SIZE THREADS: does the row, checks its result,
%% and prints `seconds` (the work alone, the VM runs before) and `cpu_seconds` (all threads of the
%% process, over the same time) as lines "name value". Exit status 3 when the result is wrong.
%%
%% Written as the libraries of OTP are inside: plain processes, tail-recursive receive loops. An
%% ask is what gen_server:call() does, without its monitor, which would cost more: a new reference,
%% which the receive matches, so that the VM looks only at messages that came after it was made.
-module(actors).
-export([main/1]).

-define(FAN_OUT_TARGETS, 10000).
-define(SPAWN_BATCH, 1000).
-define(RING_TOKENS, 10).
-define(RING_PASSES_MIN, 1000000).
-define(TIMER_SPREAD_MS, 100).
-define(CANCEL_AFTER_MS, 10000).
-define(WRONG_STATUS, 3).

main([Row, Size, _Threads]) ->
    %% The work has a process of its own, whose heap begins empty.
    {_, Monitor} = spawn_monitor(fun() -> row(Row, list_to_integer(Size)) end),
    receive
        {'DOWN', Monitor, process, _, normal} ->
            halt(0);
        {'DOWN', Monitor, process, _, {wrong, What}} ->
            io:format(standard_error, "actors.erl: wrong result: ~s~n", [What]),
            halt(?WRONG_STATUS);
        {'DOWN', Monitor, process, _, Reason} ->
            io:format(standard_error, "actors.erl: ~p~n", [Reason]),
            halt(2)
    end.

row("ask", Size) -> ask(Size);
row("ask_cross", Size) -> ask(Size);
row("fan_out", Size) -> fan_out(Size);
row("spawn_stop", Size) -> spawn_stop(Size);
row("timers", Size) -> timers(Size);
row("timers_cancel", Size) -> timers_cancel(Size);
row("ring", Size) -> ring(Size, in_spawn_order);
row("ring_shuffled", Size) -> ring(Size, shuffled).

began() ->
    {Cpu, _} = erlang:statistics(runtime),
    {erlang:monotonic_time(nanosecond), Cpu}.

ended({Wall, Cpu}) ->
    Now = erlang:monotonic_time(nanosecond),
    {CpuNow, _} = erlang:statistics(runtime),
    io:format("seconds ~.9f~ncpu_seconds ~.3f~n", [(Now - Wall) / 1.0e9, (CpuNow - Cpu) / 1.0e3]).

check(true, _) -> ok;
check(false, What) -> exit({wrong, What}).

%% ---- ask ----------------------------------------------------------------------------------------

ask(Asks) ->
    Peer = spawn_link(fun answerer/0),
    Began = began(),
    ask_loop(Peer, Asks - 1),
    ended(Began),
    unlink(Peer),
    exit(Peer, kill).

ask_loop(Peer, Left) ->
    Reference = make_ref(),
    Peer ! {ask, self(), Reference, Left},
    receive
        {Reference, Left} when Left =:= 0 -> ok;
        {Reference, Left} -> ask_loop(Peer, Left - 1);
        {Reference, _} -> exit({wrong, "an answer"})
    end.

answerer() ->
    receive
        {ask, From, Reference, Number} ->
            From ! {Reference, Number},
            answerer()
    end.

%% ---- fan_out ------------------------------------------------------------------------------------

%% One reference for a round: each of 10,000 would be looked for among all answers.
fan_out(Rounds) ->
    Targets = [{spawn_link(fun answerer/0), Number}
               || Number <- lists:seq(0, ?FAN_OUT_TARGETS - 1)],
    Began = began(),
    fan_rounds(Targets, Rounds),
    ended(Began),
    [begin unlink(Target), exit(Target, kill) end || {Target, _} <- Targets].

fan_rounds(_, 0) ->
    ok;
fan_rounds(Targets, Rounds) ->
    Reference = make_ref(),
    fan_ask(Targets, Reference),
    Sum = fan_collect(Reference, ?FAN_OUT_TARGETS, 0),
    check(Sum =:= ?FAN_OUT_TARGETS * (?FAN_OUT_TARGETS - 1) div 2, "the sum of the answers"),
    fan_rounds(Targets, Rounds - 1).

fan_ask([], _) ->
    ok;
fan_ask([{Target, Number} | Rest], Reference) ->
    Target ! {ask, self(), Reference, Number},
    fan_ask(Rest, Reference).

fan_collect(_, 0, Sum) ->
    Sum;
fan_collect(Reference, Left, Sum) ->
    receive
        {Reference, Number} -> fan_collect(Reference, Left - 1, Sum + Number)
    end.

%% ---- spawn_stop ---------------------------------------------------------------------------------

%% The last of a batch is monitored: one scheduler runs the children in the order of their spawns.
spawn_stop(Children) ->
    Before = erlang:system_info(process_count),
    Began = began(),
    spawn_batches(Children),
    ended(Began),
    check(erlang:system_info(process_count) =:= Before, "some are not gone").

spawn_batches(0) ->
    ok;
spawn_batches(Left) ->
    Batch = min(Left, ?SPAWN_BATCH),
    spawn_some(Batch - 1),
    {_, Monitor} = spawn_monitor(fun child/0),
    receive
        {'DOWN', Monitor, process, _, normal} -> spawn_batches(Left - Batch)
    end.

spawn_some(0) ->
    ok;
spawn_some(Left) ->
    spawn(fun child/0),
    spawn_some(Left - 1).

child() ->
    ok.

%% ---- timers -------------------------------------------------------------------------------------

timers(Count) ->
    Began = began(),
    timers_arm(0, Count),
    Sum = timers_collect(Count, 0),
    ended(Began),
    check(Sum =:= Count * (Count - 1) div 2, "the sum of the timers").

timers_arm(Count, Count) ->
    ok;
timers_arm(Number, Count) ->
    erlang:send_after(1 + Number rem ?TIMER_SPREAD_MS, self(), {timer, Number}),
    timers_arm(Number + 1, Count).

timers_collect(0, Sum) ->
    Sum;
timers_collect(Left, Sum) ->
    receive
        {timer, Number} -> timers_collect(Left - 1, Sum + Number)
    end.

timers_cancel(Count) ->
    Began = began(),
    Left = cancel_all(arm_far(0, Count, []), 0),
    ended(Began),
    check(Left =:= Count, "a timer that was not there").

arm_far(Count, Count, Timers) ->
    Timers;
arm_far(Number, Count, Timers) ->
    After = ?CANCEL_AFTER_MS + 1 + Number rem ?TIMER_SPREAD_MS,
    arm_far(Number + 1, Count, [erlang:send_after(After, self(), {timer, Number}) | Timers]).

cancel_all([], Cancelled) ->
    Cancelled;
cancel_all([Timer | Rest], Cancelled) ->
    case erlang:cancel_timer(Timer) of
        Milliseconds when is_integer(Milliseconds) -> cancel_all(Rest, Cancelled + 1);
        false -> cancel_all(Rest, Cancelled)
    end.

%% ---- ring ---------------------------------------------------------------------------------------

%% In spawn order each learns the one before it as soon as it is spawned, shuffled when all are. The
%% order is drawn before the clock starts.
ring(Size, Kind) ->
    Maker = self(),
    Ready = atomics:new(1, []),
    Order = order(Kind, Size),
    Nexts = nexts(Order),
    erlang:garbage_collect(),
    Began = erlang:monotonic_time(nanosecond),
    Nodes = wire(Nexts, Size, fun() -> node_new(Maker, Ready, Size) end),
    receive ready -> ok end,
    Startup = erlang:monotonic_time(nanosecond) - Began,
    Each = max(?RING_PASSES_MIN, Size) div ?RING_TOKENS,
    io:format("startup_seconds ~.9f~npasses ~b~n", [Startup / 1.0e9, Each * ?RING_TOKENS]),
    Starts = [element(1 + Place, Nodes) || Place <- places(Order, Size, 0)],
    Ends = [element(1 + Place, Nodes) || Place <- places(Order, Size, Each)],
    First = began(),
    [Node ! Each || Node <- Starts],
    Homes = [receive {home, Node} -> Node end || _ <- Starts],
    ended(First),
    check(lists:sort(Homes) =:= lists:sort(Ends), "where the tokens ended"),
    halt(0).

order(in_spawn_order, _) ->
    in_spawn_order;
order(shuffled, Size) ->
    _ = rand:seed(exsss, 1),
    Drawn = lists:sort([{rand:uniform(), Place} || Place <- lists:seq(0, Size - 1)]),
    [Place || {_, Place} <- Drawn].

%% The next of each, in the order of the spawns.
nexts(in_spawn_order) ->
    in_spawn_order;
nexts(Order) ->
    Pairs = lists:zip(Order, [lists:last(Order) | lists:droplast(Order)]),
    [Next || {_, Next} <- lists:keysort(1, Pairs)].

%% The places of the tokens after so many passes: they begin as far from each other as they can
%% along the ring, and go against the order in which it was wired.
places(in_spawn_order, Size, Passes) ->
    [(Token * Size div ?RING_TOKENS + Size - Passes rem Size) rem Size
     || Token <- lists:seq(0, ?RING_TOKENS - 1)];
places(Order, Size, Passes) ->
    Along = list_to_tuple(Order),
    [element(1 + Place, Along) || Place <- places(in_spawn_order, Size, Passes)].

wire(in_spawn_order, Size, Spawn) ->
    First = Spawn(),
    Nodes = list_to_tuple([First | spawn_chain(Size - 1, First, Spawn)]),
    First ! {next, element(Size, Nodes)},
    Nodes;
wire(Nexts, Size, Spawn) ->
    Spawned = spawn_nodes(Size, Spawn),
    Nodes = list_to_tuple(Spawned),
    wire_all(Spawned, Nexts, Nodes),
    Nodes.

spawn_chain(0, _, _) ->
    [];
spawn_chain(Left, Before, Spawn) ->
    Node = Spawn(),
    Node ! {next, Before},
    [Node | spawn_chain(Left - 1, Node, Spawn)].

spawn_nodes(0, _) -> [];
spawn_nodes(Left, Spawn) -> [Spawn() | spawn_nodes(Left - 1, Spawn)].

wire_all([], [], _) ->
    ok;
wire_all([Node | Rest], [Next | Nexts], Nodes) ->
    Node ! {next, element(1 + Next, Nodes)},
    wire_all(Rest, Nexts, Nodes).

node_new(Maker, Ready, Size) ->
    spawn(fun() ->
        receive
            {next, Next} ->
                case atomics:add_get(Ready, 1, 1) of
                    Size -> Maker ! ready;
                    _ -> ok
                end,
                node_loop(Maker, Next)
        end
    end).

%% A token is the number of passes that are left to it.
node_loop(Maker, Next) ->
    receive
        0 -> Maker ! {home, self()};
        Left -> Next ! Left - 1
    end,
    node_loop(Maker, Next).
