-- +goose Up
ALTER TABLE users ADD COLUMN password_hash text NOT NULL DEFAULT ''; -- '': nobody can sign in with one

-- What a user shows: sessions, and the tokens of links that sign in once.
CREATE TABLE user_tokens (
    token_hash bytea PRIMARY KEY, -- SHA-256
    user_id    text        NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    purpose    text        NOT NULL CHECK (purpose IN ('session', 'enter', 'invite')),
    proof      text        NOT NULL DEFAULT '', -- what began a session: password, access_key or link
    ip         text        NOT NULL DEFAULT '',
    user_agent text        NOT NULL DEFAULT '',
    used_at    timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE INDEX user_tokens_by_user ON user_tokens (user_id, purpose, created_at DESC);
CREATE INDEX user_tokens_by_expiry ON user_tokens (expires_at);

-- +goose Down
DROP TABLE user_tokens;
ALTER TABLE users DROP COLUMN password_hash;
