-- name: CountLetters :one
SELECT count(*) FROM deliveries WHERE org_id = @org_id AND state = 'kept' AND (@target::text = '' OR target = @target);

-- name: ListLetters :many
SELECT d.* FROM deliveries d WHERE d.id IN (
    SELECT p.id FROM deliveries p WHERE p.org_id = @org_id AND p.state = 'kept' AND (@target::text = '' OR p.target = @target)
    ORDER BY p.created_at DESC, p.id LIMIT @max OFFSET @skip
) ORDER BY d.created_at DESC, d.id;

-- name: LetterByID :one
SELECT * FROM deliveries WHERE org_id = @org_id AND id = @id AND state = 'kept';

-- name: DeleteLetter :execrows
DELETE FROM deliveries WHERE org_id = @org_id AND id = @id AND state = 'kept';

-- TrimLetters forgets the oldest letters of a mailbox that holds too many.
-- name: TrimLetters :exec
DELETE FROM deliveries d WHERE d.id IN (
    SELECT k.id FROM deliveries k WHERE k.org_id = @org_id AND k.state = 'kept' ORDER BY k.created_at DESC, k.id OFFSET @most
);
