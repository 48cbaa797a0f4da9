-- +goose Up
ALTER TABLE users DROP CONSTRAINT users_role_check;
ALTER TABLE users ADD CONSTRAINT users_role_check CHECK (role IN ('viewer', 'approver', 'editor', 'admin', 'gateway'));

-- A call that may be sent again: whoever sends it with the same key again gets the
-- first one's answer. The row is written by the transaction that the call makes.
CREATE TABLE repeatable_calls (
    org_id     text        NOT NULL REFERENCES orgs (id),
    caller     text        NOT NULL, -- id of the user or developer
    key        text        NOT NULL, -- Idempotency-Key
    route      text        NOT NULL,
    body_hash  bytea       NOT NULL, -- HMAC under the caller's credential
    status     integer     NOT NULL DEFAULT 0, -- of the answer; 0: it is not kept
    answer     bytea       NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, caller, key)
);
CREATE INDEX repeatable_calls_by_age ON repeatable_calls (created_at);

CREATE TABLE developers (
    id                text PRIMARY KEY,
    org_id            text        NOT NULL REFERENCES orgs (id),
    email             text        NOT NULL,
    inactive          boolean     NOT NULL DEFAULT false,
    password_hash     text        NOT NULL DEFAULT '', -- '': nobody can log in with one
    password_history  text[]      NOT NULL DEFAULT '{}', -- hashes, newest first
    password_max_days integer     NOT NULL DEFAULT 0, -- 0: it does not age
    password_updated  timestamptz NOT NULL DEFAULT 'epoch',
    verified_at       timestamptz, -- null: they signed up, and have not shown yet that the address is theirs
    last_login_at     timestamptz,
    nonce             text        NOT NULL DEFAULT '',
    sso_key           text        NOT NULL DEFAULT '',
    fields            json        NOT NULL DEFAULT '{}',
    extra             json        NOT NULL DEFAULT '{}', -- members that this release does not know
    version           bigint      NOT NULL DEFAULT 1,
    created_at        timestamptz NOT NULL DEFAULT now(),
    updated_at        timestamptz NOT NULL DEFAULT now()
);
-- In the order of bytes an index answers for beginnings of addresses as well.
CREATE UNIQUE INDEX developers_email ON developers (org_id, lower(email) COLLATE "C");
CREATE INDEX developers_by_creation ON developers (org_id, created_at, id);
CREATE INDEX developers_pending ON developers (updated_at) WHERE verified_at IS NULL;

-- What a developer shows or was sent: sessions, and the tokens of letters.
CREATE TABLE developer_tokens (
    token_hash   bytea PRIMARY KEY, -- SHA-256
    developer_id text        NOT NULL REFERENCES developers (id) ON DELETE CASCADE,
    purpose      text        NOT NULL CHECK (purpose IN ('session', 'verify', 'reset')),
    ip           text        NOT NULL DEFAULT '',
    user_agent   text        NOT NULL DEFAULT '',
    used_at      timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX developer_tokens_by_developer ON developer_tokens (developer_id, purpose);
CREATE INDEX developer_tokens_by_expiry ON developer_tokens (expires_at);

-- Whose a key is. It goes with the key, whoever deletes that.
CREATE TABLE developer_keys (
    key_hash     text PRIMARY KEY REFERENCES keys (key_hash) ON DELETE CASCADE,
    org_id       text        NOT NULL,
    developer_id text        NOT NULL REFERENCES developers (id) ON DELETE RESTRICT,
    request_id   text        NOT NULL DEFAULT '', -- of the key request that it came from
    policies     text[]      NOT NULL,            -- that it was given, in order
    created_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX developer_keys_by_developer ON developer_keys (developer_id, created_at, key_hash);
-- Whatever goes wrong elsewhere, a request comes to one key.
CREATE UNIQUE INDEX developer_keys_by_request ON developer_keys (request_id) WHERE request_id <> '';

-- Which key a developer has for a policy; the newest, where there were several.
CREATE TABLE developer_subscriptions (
    developer_id text NOT NULL REFERENCES developers (id) ON DELETE CASCADE,
    policy_id    text NOT NULL,
    key_hash     text NOT NULL REFERENCES keys (key_hash) ON DELETE CASCADE,
    PRIMARY KEY (developer_id, policy_id)
);
CREATE INDEX developer_subscriptions_by_key ON developer_subscriptions (key_hash);

CREATE TABLE catalogue_entries (
    id         text PRIMARY KEY,
    org_id     text        NOT NULL REFERENCES orgs (id),
    position   integer     NOT NULL, -- in the organisation's catalogue
    name       text        NOT NULL,
    api_id     text        NOT NULL DEFAULT '',
    policy_id  text        NOT NULL DEFAULT '',
    document   text        NOT NULL DEFAULT '', -- id of its documentation; '': none
    shown      boolean     NOT NULL,
    body       json        NOT NULL, -- the whole entry, unknown members kept
    version    bigint      NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX catalogue_entries_in_order ON catalogue_entries (org_id, position, id);
CREATE INDEX catalogue_entries_shown ON catalogue_entries (org_id, position, id) WHERE shown;
CREATE INDEX catalogue_entries_by_name ON catalogue_entries (org_id, lower(name) text_pattern_ops);
CREATE INDEX catalogue_entries_by_policy ON catalogue_entries (org_id, policy_id);
CREATE INDEX catalogue_entries_by_api ON catalogue_entries (org_id, api_id);
CREATE INDEX catalogue_entries_by_document ON catalogue_entries (org_id, document) WHERE document <> '';

-- One row for each organisation that has a catalogue, and one for each that has a
-- configuration of its portal.
CREATE TABLE portal_objects (
    org_id     text        NOT NULL REFERENCES orgs (id),
    kind       text        NOT NULL CHECK (kind IN ('catalogue', 'configuration')),
    id         text        NOT NULL UNIQUE,
    body       json        NOT NULL, -- unknown members kept; a catalogue's entries are not in it
    version    bigint      NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, kind)
);

CREATE TABLE documents (
    id         text PRIMARY KEY,
    org_id     text        NOT NULL REFERENCES orgs (id),
    api_id     text        NOT NULL DEFAULT '',
    name       text        NOT NULL DEFAULT '',
    kind       text        NOT NULL CHECK (kind IN ('openapi', 'graphql', 'markdown')),
    source     text        NOT NULL, -- as it was sent
    clean      text        NOT NULL, -- as developers may see it
    edition    integer     NOT NULL, -- of the rules by which clean was made
    version    bigint      NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX documents_by_org ON documents (org_id, created_at, id);
CREATE INDEX documents_by_api ON documents (org_id, api_id, created_at, id);
CREATE INDEX documents_by_name ON documents (org_id, lower(name) text_pattern_ops);

CREATE TABLE key_requests (
    id           text PRIMARY KEY,
    org_id       text        NOT NULL REFERENCES orgs (id),
    state        text        NOT NULL CHECK (state IN ('pending', 'approved', 'rejected')),
    developer_id text        NOT NULL REFERENCES developers (id) ON DELETE RESTRICT,
    plan         text        NOT NULL DEFAULT '', -- for_plan
    policies     text[]      NOT NULL,            -- what approving gives, in order
    reason       text        NOT NULL DEFAULT '', -- why it was rejected
    decided_by   text        NOT NULL DEFAULT '',
    decided_at   timestamptz,
    key_hash     text        NOT NULL DEFAULT '', -- of the credential that it came to, or that it is to change; '': none
    auth_type    text        NOT NULL DEFAULT 'authToken', -- what kind of credential is asked for
    sealed_secret bytea      NOT NULL DEFAULT '', -- jwt_secret, which body leaves out
    body         json        NOT NULL,            -- the record as it was sent, unknown members kept
    version      bigint      NOT NULL DEFAULT 1,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX key_requests_in_order ON key_requests (org_id, created_at DESC, id);
CREATE INDEX key_requests_by_state ON key_requests (org_id, state, created_at DESC, id);
CREATE INDEX key_requests_by_developer ON key_requests (developer_id, created_at DESC, id);
CREATE INDEX key_requests_by_plan ON key_requests (org_id, plan, created_at DESC, id);

-- A client of a developer that gets tokens for a policy by its id and secret. All
-- its tokens are further keys of one identity, which has the row in keys.
CREATE TABLE oauth_clients (
    client_id       text PRIMARY KEY,
    org_id          text        NOT NULL REFERENCES orgs (id),
    developer_id    text        NOT NULL REFERENCES developers (id) ON DELETE RESTRICT,
    policy_id       text        NOT NULL,
    key_hash        text        NOT NULL UNIQUE REFERENCES keys (key_hash) ON DELETE CASCADE,
    secret_hash     bytea       NOT NULL, -- SHA-256 of 256 random bits
    redirect_uri    text        NOT NULL DEFAULT '',
    app_description text        NOT NULL DEFAULT '',
    use_case        text        NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX oauth_clients_by_developer ON oauth_clients (developer_id, created_at, client_id);

-- Where a developer (or, without one, the organisation) wants to be told of events.
CREATE TABLE webhooks (
    id             text PRIMARY KEY,
    org_id         text        NOT NULL REFERENCES orgs (id),
    developer_id   text        REFERENCES developers (id) ON DELETE CASCADE, -- null: of the organisation
    name           text        NOT NULL DEFAULT '',
    url            text        NOT NULL,
    events         text[]      NOT NULL, -- types; '*' is every one
    sealed_secret  bytea       NOT NULL,
    sealed_former  bytea       NOT NULL DEFAULT '', -- the secret before, still signed with until former_until
    former_until   timestamptz,
    disabled_at    timestamptz, -- null: it is delivered to
    disabled_for   text        NOT NULL DEFAULT '', -- why
    failing_since  timestamptz, -- null: the last delivery worked
    version        bigint      NOT NULL DEFAULT 1,
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX webhooks_by_org ON webhooks (org_id, created_at, id);
CREATE INDEX webhooks_of_org ON webhooks (org_id) WHERE developer_id IS NULL;
CREATE INDEX webhooks_by_developer ON webhooks (developer_id, created_at, id);
CREATE INDEX webhooks_by_name ON webhooks (org_id, lower(name) COLLATE "C", id);

-- What is to leave this admin: messages to webhooks and letters. Who takes a row
-- leases it; one that dies leaves it to run out.
CREATE TABLE deliveries (
    id           text PRIMARY KEY, -- also what the receiver knows the message by
    org_id       text        NOT NULL REFERENCES orgs (id),
    kind         text        NOT NULL CHECK (kind IN ('webhook', 'hook', 'letter')), -- hook: a URL of the portal's configuration
    target       text        NOT NULL, -- id of the webhook, a URL, or an address
    developer_id text        NOT NULL DEFAULT '',
    event        text        NOT NULL, -- type of the event, or which letter
    payload      bytea       NOT NULL, -- sealed where it holds a secret, and emptied once it is done
    sealed       boolean     NOT NULL,
    state        text        NOT NULL CHECK (state IN ('pending', 'done', 'failed', 'kept')), -- kept: a letter in the local mailbox
    attempts     integer     NOT NULL DEFAULT 0, -- since it was last put into the queue
    next_at      timestamptz NOT NULL DEFAULT now(),   -- of the next attempt; while it is leased, when that runs out
    leased_until timestamptz NOT NULL DEFAULT 'epoch', -- 'epoch': nobody has it; also tells one lease from another
    attempted_at timestamptz, -- the last attempt
    status       integer     NOT NULL DEFAULT 0,  -- of the last answer; 0: none
    error        text        NOT NULL DEFAULT '', -- of the last attempt
    tries        jsonb       NOT NULL DEFAULT '[]', -- the last attempts, oldest first
    created_at   timestamptz NOT NULL DEFAULT now(),
    finished_at  timestamptz
);
CREATE INDEX deliveries_due ON deliveries (kind, next_at) WHERE state = 'pending';
CREATE INDEX deliveries_waiting ON deliveries (kind, target) WHERE state = 'pending';
CREATE INDEX deliveries_by_org ON deliveries (org_id, created_at DESC, id);
CREATE INDEX deliveries_by_state ON deliveries (org_id, state, created_at DESC, id);
CREATE INDEX deliveries_by_target ON deliveries (org_id, target, created_at DESC, id);
CREATE INDEX deliveries_by_developer ON deliveries (org_id, developer_id, created_at DESC, id);
CREATE INDEX deliveries_finished ON deliveries (finished_at) WHERE finished_at IS NOT NULL;

-- +goose Down
DROP TABLE deliveries;
DROP TABLE webhooks;
DROP TABLE oauth_clients;
DROP TABLE key_requests;
DROP TABLE documents;
DROP TABLE portal_objects;
DROP TABLE catalogue_entries;
DROP TABLE developer_subscriptions;
DROP TABLE developer_keys;
DROP TABLE developer_tokens;
DROP TABLE developers;
DROP TABLE repeatable_calls;
UPDATE users SET role = 'viewer' WHERE role = 'approver';
ALTER TABLE users DROP CONSTRAINT users_role_check;
ALTER TABLE users ADD CONSTRAINT users_role_check CHECK (role IN ('viewer', 'editor', 'admin', 'gateway'));
