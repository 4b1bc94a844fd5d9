# What the tests of launchers share: source it with the folder of the build as $1.
set -euo pipefail
export LC_ALL=C
build=$1
folder=$(mktemp -d "${TMPDIR:-/tmp}/weft-launch.XXXXXX")
bin=$build/bin
exchange=$build/tests/exchange
launched=$build/tests/example_launched
# What started this test must not be taken for what starts the ranks.
for name in $(compgen -e | grep -E '^(OMPI_|PMIX?_|SLURM_|TORCHELASTIC_|PET_|WEFT_|(LOCAL_)?RANK$|WORLD_SIZE|MASTER_|JOB_COMPLETION)' || true); do
	unset "$name"
done
export WEFT_BOOT_TIMEOUT_SEC=60
at_end=()
finish() {
	local command
	for command in "${at_end[@]}"; do eval "$command" || true; done
	rm -rf "$folder"
}
trap finish EXIT

fail() {
	echo "$*" >&2
	exit 1
}

skip() {
	echo "skipped: $*"
	exit 77
}

# same_ids FILE COUNT NAME: COUNT lines of `exchange`, one per rank, with the same two ids.
same_ids() {
	local lines ids ranks
	lines=$(grep -c "rank [0-9]* of $2 .*by $3 ids" "$1") || true
	[ "$lines" = "$2" ] || fail "$2 ranks of $3 expected:" "$(cat "$1")"
	ids=$(sed -n 's/.* ids //p' "$1" | sort -u | wc -l)
	ranks=$(grep -o 'rank [0-9]*' "$1" | sort -u | wc -l)
	[ "$ids" = 1 ] && [ "$ranks" = "$2" ] || fail "not one job:" "$(cat "$1")"
}

# one_job FILE RANKS NAME: the table of a perf program, once, of so many ranks, nothing wrong.
one_job() {
	[ "$(grep -c 'Collective test starting' "$1")" = 1 ] || fail "not one table:" "$(cat "$1")"
	grep -q "# $2 ranks: .* of $3 x" "$1" || fail "not $2 ranks of $3:" "$(cat "$1")"
	[ "$(grep -c '#  Rank ' "$1")" = "$2" ] || fail "not $2 ranks listed:" "$(cat "$1")"
	grep -q '# Out of bounds values : 0 OK' "$1" || fail "wrong values:" "$(cat "$1")"
}
