%% The rows that make processes, many and short-lived: fjcreate, fib, quicksort, skynet.
%%
%% What a process is asked comes with its spawn, by name, which is a BIF; that of a fun is not.
%%
%% The scheduler takes processes in the order of their spawns, so that a tree would grow to its full
%% breadth before the first leaf ends. Those near the leaves have a higher priority, and end first:
%% that takes a seventh of the memory and, for skynet, half of the time.
-module(savina_tree).
-export([fjcreate/1, fib/1, quicksort/1, quicksort_expected/1, skynet/1]).
-export([created/2, fib/2, sky/3]).

-define(ALIVE, 1000).
-define(ARGUMENT, 37.2).
-define(SORTED_AT_ONCE, 2048).
-define(HEAP_WORDS, 5). %% of a process that sorts, for each element
-define(CHILDREN, 10).

%% ---- fjcreate -----------------------------------------------------------------------------------

fjcreate(Size) ->
    Main = self(),
    Expected = math:sin(?ARGUMENT) * math:sin(?ARGUMENT),
    spawn(fun() ->
        First = min(?ALIVE, Size),
        create(First, self()),
        Main ! {told, collect(0, Size, Size - First, Expected, self())}
    end),
    receive {told, Told} -> Told end.

create(0, _) ->
    ok;
create(Left, Collector) ->
    create_one(Collector),
    create(Left - 1, Collector).

create_one(Collector) ->
    spawn(?MODULE, created, [Collector, ?ARGUMENT]).

created(Collector, Argument) ->
    Collector ! math:sin(Argument) * math:sin(Argument).

collect(Size, Size, _, _, _) ->
    Size;
collect(Told, Size, 0, Expected, Self) ->
    told(Expected),
    collect(Told + 1, Size, 0, Expected, Self);
collect(Told, Size, Left, Expected, Self) ->
    told(Expected),
    create_one(Self),
    collect(Told + 1, Size, Left - 1, Expected, Self).

told(Expected) ->
    receive Product -> savina:check(abs(Product - Expected) < 1.0e-9, "a product") end.

%% ---- fib ----------------------------------------------------------------------------------------

fib(N) ->
    Self = self(),
    spawn(?MODULE, fib, [N, Self]),
    receive Value -> Value end.

fib(N, Parent) when N =< 2 ->
    Parent ! 1;
fib(N, Parent) ->
    Self = self(),
    spawn_opt(?MODULE, fib, [N - 1, Self], [{priority, fib_priority(N - 1)}]),
    spawn_opt(?MODULE, fib, [N - 2, Self], [{priority, fib_priority(N - 2)}]),
    receive A -> receive B -> Parent ! A + B end end.

fib_priority(N) when N =< 2 -> high;
fib_priority(N) when N =< 8 -> normal;
fib_priority(_) -> low.

%% ---- skynet -------------------------------------------------------------------------------------

skynet(Size) ->
    Self = self(),
    spawn(fun() -> sky(Self, 0, Size) end),
    receive Sum -> Sum end.

sky(Parent, First, 1) ->
    Parent ! First;
sky(Parent, First, Leaves) ->
    Step = Leaves div ?CHILDREN,
    sky_children(?CHILDREN, self(), First, Step),
    Parent ! sum(?CHILDREN, 0).

sky_children(0, _, _, _) ->
    ok;
sky_children(Left, Self, First, Step) ->
    spawn_opt(?MODULE, sky, [Self, First, Step], [{priority, sky_priority(Step)}]),
    sky_children(Left - 1, Self, First + Step, Step).

sky_priority(1) -> high;
sky_priority(?CHILDREN) -> normal;
sky_priority(_) -> low.

sum(0, Sum) -> Sum;
sum(Left, Sum) -> receive Value -> sum(Left - 1, Sum + Value) end.

%% ---- quicksort ----------------------------------------------------------------------------------

%% A part goes down as a list, which is copied, and comes back as binaries, which are not. A process
%% is spawned with the heap that its part and the two halves of it need.
quicksort(Size) ->
    Numbers = input(Size, 1, []),
    Began = erlang:monotonic_time(nanosecond),
    sort_part(self(), all, Numbers, Size, 0, 1 bsl 32),
    receive {all, Sorted, Actors} -> ok end,
    Seconds = (erlang:monotonic_time(nanosecond) - Began) / 1.0e9,
    {Seconds, sum_of(iolist_to_binary([Sorted])),
     {messages, 2 * Actors}}.

%% Which half it is comes back with it.
sort_part(Parent, Half, Numbers, Size, Low, High) ->
    spawn_opt(fun() -> part(Parent, Half, Numbers, Size, Low, High) end,
              [{min_heap_size, ?HEAP_WORDS * Size}]).

part(Parent, Half, Numbers, Size, _, _) when Size =< ?SORTED_AT_ONCE ->
    Parent ! {Half, << <<X:32>> || X <- lists:sort(Numbers) >>, 1};
part(Parent, Half, Numbers, Size, Low, High) ->
    Middle = Low + (High - Low) div 2,
    {Lower, LowerSize, Upper} = cut(Numbers, Middle, [], 0, []),
    sort_part(self(), lower, Lower, LowerSize, Low, Middle),
    sort_part(self(), upper, Upper, Size - LowerSize, Middle, High),
    receive {lower, SortedLower, LowerActors} -> ok end,
    receive {upper, SortedUpper, UpperActors} -> ok end,
    Parent ! {Half, [SortedLower | SortedUpper], 1 + LowerActors + UpperActors}.

cut([], _, Lower, LowerSize, Upper) ->
    {Lower, LowerSize, Upper};
cut([X | Rest], Middle, Lower, LowerSize, Upper) when X < Middle ->
    cut(Rest, Middle, [X | Lower], LowerSize + 1, Upper);
cut([X | Rest], Middle, Lower, LowerSize, Upper) ->
    cut(Rest, Middle, Lower, LowerSize, [X | Upper]).

quicksort_expected(Size) ->
    sum_of(<< <<X:32>> || X <- lists:sort(input(Size, 1, [])) >>).

input(0, _, Numbers) ->
    Numbers;
input(Left, Random, Numbers) ->
    X = savina:xorshift32(Random),
    input(Left - 1, X, [X | Numbers]).

sum_of(Sorted) -> sum_of(Sorted, 0, 0).

sum_of(<<>>, _, Sum) -> Sum band 16#ffffffff;
sum_of(<<X:32, Rest/binary>>, I, Sum) -> sum_of(Rest, I + 1, Sum + (I rem 7) * X).
