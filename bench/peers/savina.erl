%% The rows of bench/savina.c on Erlang/OTP (Debian's erlang-base, with its JIT).
%%
%% erl -noshell -noinput +S T:T +P N -pa DIR -run savina main ROW SIZE THREADS ROUNDS: does ROUNDS
%% rounds of the row, checks each result, and prints lines "name value": `round_seconds` of each
%% round (from nothing to the result; the VM runs before), `messages` of a round, `result`, and what
%% a row measures beside. Exit status 3 when a result is wrong.
%%
%% Written as the libraries of OTP are inside: plain processes, tail-recursive receive loops, hot
%% messages of one number or atom where one is enough (they are not copied), state in arguments, the
%% first message passed with the spawn. No links and monitors in what is measured. The VM's busy
%% waiting, heap sizes and allocators stay as they come, where nothing else is said.
-module(savina).
-export([main/1, check/2, xorshift32/1]).

-define(WRONG_STATUS, 3).

main([Row, Size, _Threads, Rounds]) ->
    {_, Monitor} = spawn_monitor(fun() ->
        rounds(Row, list_to_integer(Size), list_to_integer(Rounds))
    end),
    receive
        {'DOWN', Monitor, process, _, normal} ->
            halt(0);
        {'DOWN', Monitor, process, _, {wrong, What}} ->
            io:format(standard_error, "savina.erl: wrong result: ~s~n", [What]),
            halt(?WRONG_STATUS);
        {'DOWN', Monitor, process, _, Reason} ->
            io:format(standard_error, "savina.erl: ~p~n", [Reason]),
            halt(2)
    end.

%% A round has a process of its own, whose heap begins empty, and answers {Seconds, Result, Beside};
%% the next begins when all that this one spawned are gone.
rounds(Name, Size, Rounds) ->
    {Run, Messages, Expected} = row(Name, Size),
    Before = erlang:system_info(process_count),
    Beside = [round(Name, Run, Expected, Before) || _ <- lists:seq(1, Rounds)],
    io:format("messages ~b~nresult ~b~n", [messages(Messages, Beside), Expected]),
    latencies(lists:append([Samples || {latencies, Samples} <- Beside])).

round(Name, Run, Expected, Before) ->
    {_, Monitor} = spawn_monitor(fun() -> exit({ended, Run()}) end),
    {Seconds, Result, Beside} =
        receive
            {'DOWN', Monitor, process, _, {ended, Outcome}} -> Outcome;
            {'DOWN', Monitor, process, _, Reason} -> exit(Reason)
        end,
    check(Result =:= Expected, Name),
    io:format("round_seconds ~.9f~n", [Seconds]),
    until_gone(Before),
    Beside.

until_gone(Before) ->
    case erlang:system_info(process_count) of
        Before -> ok;
        _ -> receive after 1 -> until_gone(Before) end
    end.

%% What a round does, its messages (`counted`: it says so itself), its result.
row("pingpong", Size) -> {clocked(fun() -> savina_talk:pingpong(Size) end), 2 * Size, Size};
row("counting", Size) -> {clocked(fun() -> savina_talk:counting(Size) end), Size, Size};
row("fjthrput", Size) ->
    {clocked(fun() -> savina_talk:fjthrput(Size) end), 60 * Size, 60 * Size};
row("threadring", Size) -> {clocked(fun() -> savina_talk:threadring(Size) end), Size, Size rem 100};
row("mailbox", Size) -> {clocked(fun() -> savina_talk:mailbox(Size) end), Size, Size};
row("chameneos", Size) ->
    {clocked(fun() -> savina_meet:chameneos(Size) end), 4 * Size, 2 * Size};
row("big", Size) -> {clocked(fun() -> savina_meet:big(Size) end), 240 * Size, 120 * Size};
row("bndbuffer", Size) ->
    {clocked(fun() -> savina_meet:bndbuffer(Size) end), 160 * Size, 40 * Size};
row("banking", Size) ->
    {clocked(fun() -> savina_meet:banking(Size) end), 4 * Size, 1000000000};
row("fjcreate", Size) -> {clocked(fun() -> savina_tree:fjcreate(Size) end), 2 * Size, Size};
row("fib", Size) ->
    Value = fib(Size, 0, 1),
    {clocked(fun() -> savina_tree:fib(Size) end), 2 * (2 * Value - 1), Value};
row("skynet", Size) ->
    {clocked(fun() -> savina_tree:skynet(Size) end), 2 * ((10 * Size - 1) div 9),
     Size * (Size - 1) div 2};
row("quicksort", Size) ->
    {fun() -> savina_tree:quicksort(Size) end, counted, savina_tree:quicksort_expected(Size)};
row("wake", Size) -> {fun() -> savina_idle:wake(Size) end, 2 * Size, Size};
row("idle", Size) -> {fun() -> savina_idle:idle(Size) end, 0, 1000}.

clocked(Work) ->
    fun() ->
        Began = erlang:monotonic_time(nanosecond),
        Result = Work(),
        {(erlang:monotonic_time(nanosecond) - Began) / 1.0e9, Result, none}
    end.

fib(1, _, Value) -> Value;
fib(N, Before, Value) -> fib(N - 1, Value, Before + Value).

messages(counted, [{messages, Messages} | _]) -> Messages;
messages(Messages, _) -> Messages.

latencies([]) ->
    ok;
latencies(Samples) ->
    Sorted = list_to_tuple(lists:sort(Samples)),
    At = fun(Share) -> element(1 + trunc((tuple_size(Sorted) - 1) * Share), Sorted) end,
    io:format("latency_ns ~b ~b ~b~n", [At(0.5), At(0.99), At(0.999)]).

check(true, _) -> ok;
check(false, What) -> exit({wrong, What}).

%% Marsaglia's generator of 32 bits, the same in all programs of the bench.
xorshift32(X) ->
    A = X bxor ((X bsl 13) band 16#ffffffff),
    B = A bxor (A bsr 17),
    B bxor ((B bsl 5) band 16#ffffffff).
