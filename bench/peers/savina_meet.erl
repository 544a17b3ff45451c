%% The rows in which many meet at one or at random: chameneos, big, bndbuffer, banking.
-module(savina_meet).
-export([chameneos/1, big/1, bndbuffer/1, banking/1]).

-define(CREATURES, 100).
-define(BIG_ACTORS, 120).
-define(PRODUCERS, 40).
-define(CONSUMERS, 40).
-define(PLACES, 50).
-define(ITEM_STEPS, 25).
-define(ACCOUNTS, 1000).
-define(SOURCES, 900).
-define(AMOUNT_END, 1000).
-define(BALANCE_BEGIN, 1000000).
-define(TRANSFERS_OUT, 1000).

%% ---- chameneos ----------------------------------------------------------------------------------

chameneos(Size) ->
    Main = self(),
    spawn(fun() ->
        Mall = self(),
        [spawn(fun() -> creature(Mall, Index rem 3, 0) end)
         || Index <- lists:seq(0, ?CREATURES - 1)],
        mall(Size),
        Main ! {meetings, lists:sum([close() || _ <- lists:seq(1, ?CREATURES)])}
    end),
    receive {meetings, Sum} -> Sum end.

%% Colours are 0, 1, 2: who meets its own keeps it, two others make the third.
creature(Mall, Colour, Meetings) ->
    Mall ! [self() | Colour],
    receive
        Colour -> creature(Mall, Colour, Meetings + 1);
        no_more -> Mall ! Meetings;
        Other -> creature(Mall, 3 - Colour - Other, Meetings + 1)
    end.

mall(0) ->
    ok;
mall(Left) ->
    receive
        [First | FirstColour] ->
            receive
                [Second | SecondColour] ->
                    First ! SecondColour,
                    Second ! FirstColour,
                    mall(Left - 1)
            end
    end.

%% Says no to one that asks, and gets its count.
close() ->
    receive [Creature | _] -> Creature ! no_more end,
    receive Meetings when is_integer(Meetings) -> Meetings end.

%% ---- big ----------------------------------------------------------------------------------------

%% Here, and not in the other three, queues off the heaps are faster.
big(Size) ->
    Main = self(),
    All = list_to_tuple([spawn_opt(fun() -> one(Main, Index, Size) end,
                                   [{message_queue_data, off_heap}])
                         || Index <- lists:seq(0, ?BIG_ACTORS - 1)]),
    [One ! {all, All} || One <- tuple_to_list(All)],
    Sum = lists:sum([receive {pongs, Pongs} -> Pongs end || _ <- lists:seq(1, ?BIG_ACTORS)]),
    [exit(One, kill) || One <- tuple_to_list(All)],
    Sum.

one(Sink, Index, Size) ->
    receive {all, All} -> ok end,
    ping_another(Sink, All, Index, Index + 1, 0, Size).

ping_another(Sink, All, Index, Random, Pongs, Size) ->
    X = savina:xorshift32(Random),
    Target = X rem (?BIG_ACTORS - 1),
    case Target >= Index of
        true -> element(Target + 2, All) ! self();
        false -> element(Target + 1, All) ! self()
    end,
    answer(Sink, All, Index, X, Pongs, Size).

%% A ping is who sent it.
answer(Sink, All, Index, Random, Pongs, Size) ->
    receive
        pong when Pongs + 1 =:= Size ->
            Sink ! {pongs, Size},
            answer_others();
        pong ->
            ping_another(Sink, All, Index, Random, Pongs + 1, Size);
        Pid ->
            Pid ! pong,
            answer(Sink, All, Index, Random, Pongs, Size)
    end.

answer_others() ->
    receive
        Pid ->
            Pid ! pong,
            answer_others()
    end.

%% ---- bndbuffer ----------------------------------------------------------------------------------

bndbuffer(Size) ->
    Main = self(),
    spawn(fun() ->
        Manager = self(),
        Makers = [spawn(fun() -> maker(Manager, Size) end) || _ <- lists:seq(1, ?PRODUCERS)],
        [spawn(fun() -> Manager ! self(), taker(Manager, 0) end)
         || _ <- lists:seq(1, ?CONSUMERS)],
        [Maker ! permit || Maker <- Makers],
        buffer(?PRODUCERS * Size, ?PRODUCERS, queue:new(), queue:new()),
        Main ! {taken, lists:sum([leave() || _ <- lists:seq(1, ?CONSUMERS)])}
    end),
    receive {taken, Sum} -> Sum end.

make_item() ->
    make_item(0.25, 0).

make_item(X, ?ITEM_STEPS) -> X;
make_item(X, I) -> make_item(math:sin(X) + 1.0e-9 * I, I + 1).

maker(Manager, 1) ->
    receive permit -> Manager ! {last, make_item()} end;
maker(Manager, Left) ->
    receive permit -> Manager ! {self(), make_item()} end,
    maker(Manager, Left - 1).

taker(Manager, Count) ->
    receive
        no_more ->
            Manager ! Count;
        Item ->
            savina:check(abs(make_item() - Item) < 1.0e-9, "an item"),
            Manager ! self(),
            taker(Manager, Count + 1)
    end.

%% Left: items that no consumer got. Permits: what producers may still send. Count: of Items.
buffer(Left, Permits, Items, Makers) ->
    buffer(Left, Permits, 0, Items, Makers, []).

buffer(0, _, _, _, _, Takers) ->
    [Taker ! no_more || Taker <- Takers],
    ok;
buffer(Left, Permits, Count, Items, Makers, Takers) ->
    receive
        {Maker, Item} when Takers =:= [] ->
            {Permits1, Makers1} = permit(Permits - 1, Count + 1, add(Maker, Makers)),
            buffer(Left, Permits1, Count + 1, queue:in(Item, Items), Makers1, []);
        {Maker, Item} ->
            hd(Takers) ! Item,
            {Permits1, Makers1} = permit(Permits - 1, Count, add(Maker, Makers)),
            buffer(Left - 1, Permits1, Count, Items, Makers1, tl(Takers));
        Taker when Count =:= 0 ->
            buffer(Left, Permits, 0, Items, Makers, [Taker | Takers]);
        Taker ->
            {{value, Item}, Items1} = queue:out(Items),
            Taker ! Item,
            {Permits1, Makers1} = permit(Permits, Count - 1, Makers),
            buffer(Left - 1, Permits1, Count - 1, Items1, Makers1, Takers)
    end.

add(last, Makers) -> Makers;
add(Maker, Makers) -> queue:in(Maker, Makers).

permit(Permits, Count, Makers) when Permits + Count < ?PLACES ->
    case queue:out(Makers) of
        {{value, Maker}, Makers1} ->
            Maker ! permit,
            permit(Permits + 1, Count, Makers1);
        {empty, Makers1} ->
            {Permits, Makers1}
    end;
permit(Permits, _, Makers) ->
    {Permits, Makers}.

leave() ->
    receive
        Count when is_integer(Count) -> Count;
        Taker -> Taker ! no_more, leave()
    end.

%% ---- banking ------------------------------------------------------------------------------------

banking(Size) ->
    Main = self(),
    spawn(fun() ->
        All = list_to_tuple([spawn(fun() -> account(?BALANCE_BEGIN) end)
                             || _ <- lists:seq(1, ?ACCOUNTS)]),
        First = min(?TRANSFERS_OUT, Size),
        transfers_more(Size - First, transfers(First, 1, All), All),
        await_done(First),
        [Account ! {balance, self()} || Account <- tuple_to_list(All)],
        Main ! {balances, lists:sum([receive Sum -> Sum end || _ <- tuple_to_list(All)])}
    end),
    receive {balances, Sum} -> Sum end.

transfers(0, Random, _) ->
    Random;
transfers(Left, Random, All) ->
    transfers(Left - 1, transfer(Random, All), All).

transfers_more(0, _, _) ->
    ok;
transfers_more(Left, Random, All) ->
    receive done -> transfers_more(Left - 1, transfer(Random, All), All) end.

transfer(Random, All) ->
    A = savina:xorshift32(Random),
    Source = A rem ?SOURCES,
    B = savina:xorshift32(A),
    Destination = Source + 1 + B rem (?ACCOUNTS - 1 - Source),
    C = savina:xorshift32(B),
    element(Source + 1, All) ! {self(), element(Destination + 1, All), C rem ?AMOUNT_END},
    C.

await_done(0) -> ok;
await_done(Left) -> receive done -> await_done(Left - 1) end.

%% The answer of the other account is looked for by a new reference, so that the VM passes over what
%% was there before: nothing else is taken until it comes.
account(Balance) ->
    receive
        {Teller, Destination, Amount} ->
            Reference = make_ref(),
            Destination ! {credit, self(), Reference, Amount},
            receive Reference -> ok end,
            Teller ! done,
            account(Balance - Amount);
        {credit, Source, Reference, Amount} ->
            Source ! Reference,
            account(Balance + Amount);
        {balance, Teller} ->
            Teller ! Balance
    end.
