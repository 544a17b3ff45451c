%% The contender of `bench cluster` on the distribution of Erlang/OTP (Debian's erlang-base).
%%
%% erl -noshell -name SIDE@127.0.0.1 ... -run cluster main SIDE ROW COUNT PORT [STYLE]: the command
%% line and what the sides say to the bench are those of bench/support/cluster_side.h. PORT is that
%% of epmd, which the nodes have from ERL_EPMD_PORT.
%%
%% Row ask: 64 processes ask one process of the other node, each one ask after the other. Without a
%% style an ask is a message with a new reference, and an answer with the same. With the style
%% `call` it is gen_server:call() to a gen_server, whose monitor costs two more signals, and which
%% is the one that notices a dead node.
-module(cluster).
-behaviour(gen_server).
-export([main/1, init/1, handle_call/3, handle_cast/2]).

-define(UNDER_WAY, 64).
-define(NOTICES_A_MARK, 1000).
-define(MARKS_MAX, 16).
-define(CALL_TIMEOUT_MS, 60000).

main(["responder", Row, _Count, _Port | Style]) ->
    case {Row, Style} of
        {"ask", ["call"]} ->
            {ok, _} = gen_server:start_link({local, responder}, ?MODULE, [], []);
        {"ask", _} ->
            register(responder, spawn_link(fun answerer/0));
        {"notice", _} ->
            register(responder, spawn_link(fun() -> listener(0, 0) end))
    end,
    io:format("ready~n"),
    await_end();
main(["requester", Row, CountText, _Port | Style]) ->
    Count = list_to_integer(CountText),
    Peer = find(100),
    io:format("ready~n"),
    case io:get_line("") of
        eof -> halt(0);
        _ -> ok
    end,
    Began = erlang:monotonic_time(nanosecond),
    Verdict = case {Row, Style} of
                  {"ask", ["call"]} -> asks(Count, fun(Words) -> call(Peer, Words) end);
                  {"ask", _} -> asks(Count, fun(Words) -> ask(Peer, Words) end);
                  {"notice", _} -> notices(Peer, 0, Count, [])
              end,
    Took = erlang:monotonic_time(nanosecond) - Began,
    io:format("~s: ~b in ~b ns, ~s~n", [Row, Count, Took, Verdict]),
    await_end().

await_end() ->
    case io:get_line("") of
        eof -> halt(0);
        _ -> await_end()
    end.

%% The process of the other node. Asking for it makes the connection.
find(Tries) ->
    Node = 'responder@127.0.0.1',
    case net_kernel:connect_node(Node) andalso rpc:call(Node, erlang, whereis, [responder]) of
        Peer when is_pid(Peer) -> Peer;
        _ when Tries > 0 -> timer:sleep(20), find(Tries - 1);
        _ -> io:format(standard_error, "cluster.erl: no responder~n", []), halt(1)
    end.

%% ---- Asks ---------------------------------------------------------------------------------------

answer(<<Number:64/native, _:8/binary>>) ->
    <<Number:64/native, (bnot Number):64/native>>.

answerer() ->
    receive
        {ask, From, Reference, Words} ->
            From ! {Reference, answer(Words)},
            answerer()
    end.

init([]) -> {ok, none}.
handle_call(Words, _From, State) -> {reply, answer(Words), State}.
handle_cast(_, State) -> {noreply, State}.

ask(Peer, Words) ->
    Reference = make_ref(),
    Peer ! {ask, self(), Reference, Words},
    receive
        {Reference, Answer} -> Answer
    end.

call(Peer, Words) ->
    gen_server:call(Peer, Words, ?CALL_TIMEOUT_MS).

asks(Count, Ask) ->
    Askers = [spawn_monitor(fun() -> ask_in_turn(First, Count, Ask) end)
              || First <- lists:seq(0, ?UNDER_WAY - 1)],
    Ends = [receive {'DOWN', Monitor, process, Asker, End} -> End end
            || {Asker, Monitor} <- Askers],
    case lists:all(fun(End) -> End =:= normal end, Ends) of
        true -> "ok";
        false -> "wrong: an answer"
    end.

ask_in_turn(Number, Count, _) when Number >= Count ->
    ok;
ask_in_turn(Number, Count, Ask) ->
    Complement = (1 bsl 64) - 1 - Number,
    case Ask(<<Number:64/native, 0:64>>) of
        <<Number:64/native, Complement:64/native>> ->
            ask_in_turn(Number + ?UNDER_WAY, Count, Ask);
        _ ->
            exit(wrong)
    end.

%% ---- Notices ------------------------------------------------------------------------------------

listener(Came, Wrong) ->
    receive
        {notice, <<Came:64/native, _:56/binary>>} -> listener(Came + 1, Wrong);
        {notice, _} -> listener(Came + 1, Wrong + 1);
        {mark, From, Reference} ->
            From ! {Reference, Came, Wrong},
            listener(Came, Wrong)
    end.

%% Marks are a list of those under way, the oldest one first.
notices(_, Sent, Sent, Marks) ->
    await_marks(Marks);
notices(Peer, Sent, Count, Marks) when length(Marks) =:= ?MARKS_MAX ->
    case await_mark(hd(Marks)) of
        true -> notices(Peer, Sent, Count, tl(Marks));
        false -> "wrong: a mark"
    end;
notices(Peer, Sent, Count, Marks) ->
    Until = min(Sent + ?NOTICES_A_MARK, Count),
    notify(Peer, Sent, Until),
    Reference = make_ref(),
    Peer ! {mark, self(), Reference},
    notices(Peer, Until, Count, Marks ++ [{Reference, Until}]).

notify(_, Until, Until) ->
    ok;
notify(Peer, Number, Until) ->
    Peer ! {notice, <<Number:64/native, 0:448>>},
    notify(Peer, Number + 1, Until).

await_marks([]) ->
    "ok";
await_marks([Mark | Rest]) ->
    case await_mark(Mark) of
        true -> await_marks(Rest);
        false -> "wrong: a mark"
    end.

await_mark({Reference, Sent}) ->
    receive
        {Reference, Came, Wrong} -> Came =:= Sent andalso Wrong =:= 0
    end.
