# Completion of weft and the perf programs for bash. It asks the programs: options are those
# that --help names, machines and schedules those that they list.

# Options that a help text names: in its usage and its list, whose lines are indented.
_weft_options() {
	"$@" --help 2> /dev/null | grep -E $'^(usage:|  |\t)' | grep -oE -- '(^|[][ ,|])--?[a-zA-Z][a-z0-9_-]*' |
		grep -oE -- '--?[a-zA-Z][a-z0-9_-]*' | sort -u
}

# What may follow the words before the cursor, one per line.
_weft_words() {
	local weft=$1 command=$2 before=$3 count=$4 collective=$5
	case $before in
	--expect) "$weft" topo --list 2> /dev/null | awk '{ print $1 }' ;;
	--coll) "$weft" sched list 2> /dev/null | awk 'NR > 1 { print $1 }' | sort -u ;;
	--lowered) printf '%s\n' direct pull staged ;;
	--explain) printf '%s\n' GPU0 GPU1 GPU2 GPU3 GPU4 GPU5 GPU6 GPU7 NIC0 NIC1 NIC2 NIC3 ;;
	--nccl) "$weft" version 2> /dev/null | sed -n 's/^models NCCL //p' | tr -d , | tr ' ' '\n' ;;
	--machine | --on) "$weft" topo --list 2> /dev/null | awk '{ print $1 }' ;;
	--kind) printf '%s\n' mpijob pytorchjob trainjob job jobset statefulset ;;
	*)
		case $command in
		'') "$weft" help 2> /dev/null | awk '/^  [a-z]/ { print $1 }' ;;
		plan) "$weft" plan --models 2> /dev/null | awk '{ print $1 }' ;;
		topo | graph | tune) "$weft" topo --list 2> /dev/null | awk '{ print $1 }' ;;
		params) "$weft" params 2> /dev/null | awk 'NR > 1 { print $1 == "*" ? $2 : $1 }' ;;
		run) [ "$count" -gt 0 ] || compgen -c ;;
		help) "$weft" help 2> /dev/null | awk '/^  [a-z]/ { print $1 }' ;;
		k8s)
			case $count in
			0) printf '%s\n' check new rules ;;
			1) [ "$collective" = check ] || printf '%s\n' nccl-test torchrun deepspeed weft ;;
			esac
			;;
		ps) "$weft" ps 2> /dev/null | awk '$2 ~ /^[0-9]+$/ && $1 ~ /^[0-9]+$/ { print $2 }' ;;
		sched)
			case $count in
			0) printf '%s\n' list show check time ;;
			1) "$weft" sched list 2> /dev/null | awk 'NR > 1 { print $1 }' | sort -u ;;
			2) "$weft" sched list "$collective" 2> /dev/null | awk 'NR > 1 { print $2 }' ;;
			esac
			;;
		esac
		;;
	esac
}

_weft() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local weft=${COMP_WORDS[0]} command='' count=0 i words
	if [ "$COMP_CWORD" -gt 1 ]; then
		command=${COMP_WORDS[1]}
		for ((i = 2; i < COMP_CWORD; i++)); do
			[[ ${COMP_WORDS[i]} == -* ]] || count=$((count + 1))
		done
	fi
	if [[ $word == -* && -n $command && ! ($command == run && $count -gt 0) ]]; then
		words=$(_weft_options "$weft" "$command")
	else
		words=$(_weft_words "$weft" "$command" "$before" "$count" "${COMP_WORDS[$([ "$command" = k8s ] && echo 2 || echo 3)]}")
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
	case "$command $before" in
	*' --svg' | *' --xml' | *' --dump' | 'run --hostfile' | 'run --path' | 'doctor --root' | 'doctor --capture') mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
	'k8s --machine' | 'k8s --kind') ;;
	'k8s '*)
		[[ $word == -* || $count -lt 1 || ${COMP_WORDS[2]} != check ]] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
		;;
	'doctor '* | 'log '*)
		[[ $word == -* || $before == --expect ]] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
		;;
	'topo '* | 'graph '* | 'tune '*)
		[[ $word == -* ]] || mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -X '!*.xml' -- "$word")
		;;
	esac
}

_weft_perf() {
	local word=${COMP_WORDS[COMP_CWORD]}
	mapfile -t COMPREPLY < <(compgen -W "$(_weft_options "${COMP_WORDS[0]}")" -- "$word")
}

complete -o filenames -F _weft weft
complete -F _weft_perf all_gather_perf all_reduce_perf alltoall_perf alltoallv_perf \
	broadcast_perf gather_perf hypercube_perf reduce_perf reduce_scatter_perf scatter_perf \
	sendrecv_perf
