-- +goose Up
ALTER TABLE portal_objects DROP CONSTRAINT portal_objects_kind_check;
ALTER TABLE portal_objects ADD CONSTRAINT portal_objects_kind_check CHECK (kind IN ('catalogue', 'configuration', 'brand', 'logo', 'pages', 'menus', 'hooks'));

-- +goose Down
DELETE FROM portal_objects WHERE kind IN ('pages', 'menus', 'hooks');
ALTER TABLE portal_objects DROP CONSTRAINT portal_objects_kind_check;
ALTER TABLE portal_objects ADD CONSTRAINT portal_objects_kind_check CHECK (kind IN ('catalogue', 'configuration', 'brand', 'logo'));
