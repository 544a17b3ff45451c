%% The rows in which little happens: wake, idle.
-module(savina_idle).
-export([wake/1, idle/1]).

-define(WAKE_PAUSE_MS, 1).
-define(IDLE_ACTORS, 1000).

%% No foreign thread can call into the VM: the one that asks is a process that a timer woke.
wake(Size) ->
    Peer = spawn(fun answerer/0),
    Began = erlang:monotonic_time(nanosecond),
    Samples = wake(Peer, Size, []),
    Seconds = (erlang:monotonic_time(nanosecond) - Began) / 1.0e9,
    exit(Peer, kill),
    {Seconds, length(Samples), {latencies, Samples}}.

wake(_, 0, Samples) ->
    Samples;
wake(Peer, Left, Samples) ->
    receive after ?WAKE_PAUSE_MS -> ok end,
    Asked = erlang:monotonic_time(nanosecond),
    ask(Peer, Left),
    wake(Peer, Left - 1, [erlang:monotonic_time(nanosecond) - Asked | Samples]).

ask(Peer, Number) ->
    Reference = make_ref(),
    Peer ! {ask, self(), Reference, Number},
    receive
        {Reference, Number} -> ok;
        {Reference, _} -> exit({wrong, "an answer"})
    end.

answerer() ->
    receive
        {ask, From, Reference, Number} ->
            From ! {Reference, Number},
            answerer()
    end.

idle(Size) ->
    Waiting = [spawn(fun answerer/0) || _ <- lists:seq(1, ?IDLE_ACTORS)],
    [ask(Peer, 0) || Peer <- Waiting],
    erlang:garbage_collect(),
    Before = cpu_ns(),
    Used = cpu_ns(),
    Began = erlang:monotonic_time(nanosecond),
    receive after Size * 1000 -> ok end,
    Seconds = (erlang:monotonic_time(nanosecond) - Began) / 1.0e9,
    Idle = max(0, cpu_ns() - Used - (Used - Before)),
    io:format("cpu_seconds ~.9f~n", [Idle / 1.0e9]),
    Answers = [ask(Peer, 1) || Peer <- Waiting],
    [exit(Peer, kill) || Peer <- Waiting],
    {Seconds, length(Answers), none}.

%% Of all threads of the process: the VM's own figure counts in milliseconds. To ask takes time
%% itself, which is taken off above.
cpu_ns() ->
    {ok, Threads} = file:list_dir("/proc/self/task"),
    lists:sum([thread_ns(Thread) || Thread <- Threads]).

thread_ns(Thread) ->
    {ok, Text} = file:read_file(["/proc/self/task/", Thread, "/schedstat"]),
    {Nanoseconds, _} = string:to_integer(binary_to_list(Text)),
    Nanoseconds.
