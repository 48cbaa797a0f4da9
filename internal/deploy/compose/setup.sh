#!/usr/bin/env bash
# Makes the secrets of compose.yaml, and an authority with the certificates of its servers, in
# the folder secrets beside this script. What is there already stays as it is.
set -euo pipefail
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
cd secrets

random() { [ -s "$1" ] || openssl rand -hex 32 > "$1"; }
random database_password
random store_password
random master_key
random gateway_token
[ -s database_url ] || printf 'postgres://sluice:%s@postgres/sluice?sslmode=disable\n' "$(cat database_password)" > database_url
[ -s valkey_url ] || printf 'rediss://:%s@valkey:6379\n' "$(cat store_password)" > valkey_url

if [ ! -s authority.crt ]; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=authority of this compose project" \
		-keyout authority.key -out authority.crt -addext "keyUsage=critical,keyCertSign,cRLSign" 2>/dev/null
fi
# certificate NAME USAGE [SUBJECT ALTERNATIVE NAMES]
certificate() {
	[ ! -s "$1.pem" ] || return 0
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr" 2>/dev/null
	printf 'extendedKeyUsage=%s\n%s\n' "$2" "${3:+subjectAltName=$3}" > "$1.ext"
	openssl x509 -req -in "$1.csr" -CA authority.crt -CAkey authority.key -CAcreateserial -days 825 -extfile "$1.ext" -out "$1.crt" 2>/dev/null
	cat "$1.crt" "$1.key" > "$1.pem"
	rm "$1.csr" "$1.ext" "$1.crt" "$1.key"
}
certificate admin serverAuth "DNS:admin,DNS:localhost,IP:127.0.0.1"
certificate valkey serverAuth "DNS:valkey"
# Containers read them as users of their own; the folder keeps others of this machine out.
chmod 0644 ./*
chmod 0600 authority.key
echo "secrets are in $(pwd)"
