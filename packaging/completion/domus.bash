# bash completion for domus                                  -*- shell-script -*-
# shellcheck shell=bash

# Words of the first column of `domus list`, and of the second. A program may have any name, and
# compgen expands words as the shell does, so names with other characters than these are left out.
_domus_programs() {
    command domus list 2>/dev/null |
        sed -n -e '1d; s/^ *\([0-9][0-9]*\) \([A-Za-z0-9._-][A-Za-z0-9._-]*\) .*/\1 \2/p; t' \
            -e 's/^ *\([0-9][0-9]*\) .*/\1/p'
}

_domus() {
    local word=${COMP_WORDS[COMP_CWORD]} before='' command=${COMP_WORDS[1]-}
    local commands='list top stat actors trace flame log level cluster config doctor tune'
    local options='-h --help' words=''

    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$commands help -h --help -V --version" -- "$word")
        return
    fi
    before=${COMP_WORDS[COMP_CWORD - 1]}
    case $command in
    help) words=$commands options='' ;;
    list) ;;
    top) options+=' -b --batch -d --delay -n --iterations -o --sort --filter' ;;
    stat) options+=' -j --json' ;;
    actors) options+=' -b --behaviour --state -c --count -f --full -n --limit' ;;
    trace) options+=' -d --duration -o --output' ;;
    flame) options+=' -d --duration -o --output --hz' ;;
    log) options+=' -l --level -f --follow --set-level' ;;
    doctor) options+=' -n --seconds -w --watch -j --json' ;;
    cluster) options+=' -j --json -n --limit' ;;
    config)
        words='check show diff explain schema'
        options+=' -x --exec --set -c --changed -j --json'
        ;;
    level) words='off counters histograms spans' ;;
    tune)
        options+=' --service --load --keys --values --goal --keep --ready --runs --pairs --least'
        options+=' --seed --limit --start-limit --stop-limit --plot --json --dry-run'
        ;;
    *) return ;;
    esac
    case $command in
    help | list | tune) ;;
    *) options+=' -p --program -s --socket' ;;
    esac

    case "$command $before" in
    *' -p' | *' --program')
        mapfile -t COMPREPLY < <(compgen -W "$(_domus_programs)" -- "$word")
        return
        ;;
    'top -o' | 'top --sort')
        words='time runs messages wait failures alive bytes name' options=''
        ;;
    'actors --state') words='created mounting waiting ready scheduled running' options='' ;;
    'log -l' | 'log --level' | 'log --set-level') words='error warning info' options='' ;;
    'trace -o' | 'trace --output' | 'flame -o' | 'flame --output' | 'config -x' | 'config --exec' | \
        'config check' | 'config show' | 'config diff')
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        compopt -o filenames 2>/dev/null
        return
        ;;
    'tune --service' | 'tune --load' | 'tune --ready' | 'tune --plot' | 'tune --json')
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        compopt -o filenames 2>/dev/null
        return
        ;;
    'tune --keys')
        words='ioRatio minBudget maxBudget maxMessagesPerRun beltSlots steal.floor steal.aggression'
        words+=' steal.minRun steal.patience idle.spin idle.standIn buffers.size buffers.count'
        options=''
        ;;
    'tune --goal') words='rate p50 p99 p999 cpu' options='' ;;
    'top -d' | 'top --delay' | 'trace -d' | 'trace --duration' | 'flame -d' | 'flame --duration')
        words='500ms 1s 2s 10s' options=''
        [ "$command" = top ] || words='1s 2s 10s 60s'
        ;;
    'doctor -n' | 'doctor --seconds') words='10s 30s 1m' options='' ;;
    *' -s' | *' --socket' | 'config --set' | 'config explain' | 'top -n' | 'top --iterations' | 'top --filter' | 'actors -b' | \
        'actors --behaviour' | 'actors -n' | 'actors --limit' | 'cluster -n' | \
        'cluster --limit' | 'flame --hz' | 'tune --values' | 'tune --keep' | 'tune --runs' | \
        'tune --pairs' | 'tune --least' | 'tune --seed' | 'tune --limit' | 'tune --start-limit' | \
        'tune --stop-limit') return ;;
    esac
    if [ "$command" = doctor ] && [ -z "$words" ] && [ "${word#-}" = "$word" ]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word") # BEFORE and AFTER
        compopt -o filenames 2>/dev/null
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words $options" -- "$word")
}

complete -F _domus domus
