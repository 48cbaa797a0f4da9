#!/usr/bin/env bash
# Installs missing programs that Sluice and its tests need, and prints what it installs.
#
#   install-deps.sh postgres   the PostgreSQL server, for "sluice up"
#   install-deps.sh store      a Redis or Valkey server, for the tests
#   install-deps.sh rabbitmq   the RabbitMQ server, for the tests
#   install-deps.sh node       Node.js and npm, for the tests against graphql-js
#   install-deps.sh browser    Chromium, for the tests of the pages
#   install-deps.sh guides     curl, jq, openssl, Python and nginx, for the test that pastes guides
#   install-deps.sh units      systemd-analyze, for the test of the units
#   install-deps.sh compiler   a C compiler, for the race detector
set -euo pipefail

# have_postgres searches where Sluice does: initdb and postgres, side by side, of
# version 13 or later.
have_postgres() {
	local initdb dir major
	initdb=$(command -v initdb || echo /nonexistent/initdb)
	for dir in "$(dirname "$initdb")" "$(dirname "$(readlink -f "$initdb")")" \
		/usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/local/pgsql/bin \
		/opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin; do
		if [ ! -x "$dir/initdb" ] || [ ! -x "$dir/postgres" ]; then
			continue
		fi
		major=$("$dir/postgres" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
		[ "${major:-0}" -ge 13 ] && return 0
	done
	return 1
}

have_store() { command -v redis-server >/dev/null || command -v valkey-server >/dev/null; }

# have_rabbitmq searches where the tests do: scripts that do not change the user.
have_rabbitmq() { [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] && command -v epmd >/dev/null; }

# need_rabbitmq installs it, and ends the service that the package starts: it listens on all
# addresses with a well-known password.
need_rabbitmq() {
	if have_rabbitmq; then
		return
	fi
	need rabbitmq "the RabbitMQ server" rabbitmq-server
	if [ -d /run/systemd/system ]; then
		as_root systemctl disable --now rabbitmq-server
	else
		as_root service rabbitmq-server stop || true
	fi
}

# have_node requires 18 or later: the programs are modules with top-level await.
have_node() {
	local major
	command -v node >/dev/null && command -v npm >/dev/null || return 1
	major=$(node --version | sed 's/^v\([0-9]*\).*/\1/')
	[ "${major:-0}" -ge 18 ]
}

have_browser() { command -v chromium >/dev/null || command -v chromium-browser >/dev/null; }

have_guides() { command -v curl >/dev/null && command -v jq >/dev/null && command -v openssl >/dev/null && command -v python3 >/dev/null && PATH=$PATH:/usr/sbin command -v nginx >/dev/null; }

have_units() { command -v systemd-analyze >/dev/null; }

have_compiler() { command -v "${CC:-gcc}" >/dev/null || command -v clang >/dev/null; }

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		echo "This needs root, and there is no sudo. Run as root: $*" >&2
		exit 1
	fi
}

updated=

# need what description package...
need() {
	local what=$1 description=$2
	shift 2
	if "have_$what"; then
		return
	fi
	if ! command -v apt-get >/dev/null; then
		echo "$description is missing, and there is no apt-get here to install it with. Install it with your system's package manager, its programs on the PATH, and try again." >&2
		exit 1
	fi
	echo "$description is missing: installing $* (apt)"
	# The lock may be held by an unattended upgrade for a while.
	local options=(-q -o DPkg::Lock::Timeout=300)
	if [ -z "$updated" ]; then
		as_root apt-get "${options[@]}" update </dev/null
		updated=yes
	fi
	as_root env DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" install -y --no-install-recommends "$@" </dev/null
	if ! "have_$what"; then
		echo "$* is installed, but its programs are not where they were looked for" >&2
		exit 1
	fi
}

for what in "$@"; do
	case $what in
	postgres)
		# The cluster and service that the package sets up are neither used nor touched.
		need postgres "a PostgreSQL server, 13 or later," postgresql
		;;
	store)
		# The service that the package starts on loopback is not used.
		need store "a Redis or Valkey server" redis-server
		;;
	rabbitmq)
		need_rabbitmq
		;;
	node)
		need node "Node.js, 18 or later, with npm," nodejs npm
		;;
	browser)
		need browser "Chromium, for the tests of the pages," chromium
		;;
	guides)
		# The service that the nginx package starts is not used.
		need guides "curl, jq, openssl, Python or nginx, for the test that pastes guides," curl jq openssl python3 nginx-light
		;;
	units)
		# Nothing of systemd is started.
		need units "systemd-analyze, for the test of the units," systemd
		;;
	compiler)
		need compiler "a C compiler, for the race detector," gcc libc6-dev
		;;
	*)
		echo "install-deps.sh: unknown item \"$what\": use postgres, store, rabbitmq, node, browser, guides, units or compiler" >&2
		exit 2
		;;
	esac
done
