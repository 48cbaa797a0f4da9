// Package browser tests the pages of the product in a real browser. Each file of
// stories is a subtest with a product of its own; README.md says how to add one.
package browser

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(rig.Main(m)) }

// storyWithin bounds one file of stories.
const storyWithin = 12 * time.Minute

// options are read off the first lines of a file: "// product: --demo" adds arguments of
// `sluice up`, "// setting: portal.gateway_url=http://a.example" settings, in which {front}
// is a free address for a server of the story's own, "// fill: 100 APIs, 1000 keys" rows.
var (
	argumentsLine = regexp.MustCompile(`(?m)^// product: (.+)$`)
	settingLine   = regexp.MustCompile(`(?m)^// setting: ([\w.]+)=(.*)$`)
	fillLine      = regexp.MustCompile(`(?m)^// fill: (\d+) APIs, (\d+) keys$`)
	linkLine      = regexp.MustCompile(`http://\S+/enter#\S+`)
)

func TestStories(t *testing.T) {
	chromium := testenv.Chromium(t)
	testenv.Packages(t, "internal/e2e/browser")
	files, err := filepath.Glob("stories/*.mjs")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".mjs"), func(t *testing.T) {
			t.Parallel()
			runStory(t, file, chromium)
		})
	}
}

// runStory starts a product and runs the stories of a file against it.
func runStory(t *testing.T, file, chromium string) {
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var arguments []string
	if found := argumentsLine.FindSubmatch(source); found != nil {
		arguments = strings.Fields(string(found[1]))
	}
	with := rig.Settings{}
	front := rig.FreeAddress(t)
	for _, found := range settingLine.FindAllSubmatch(source, -1) {
		with[string(found[1])] = strings.ReplaceAll(string(found[2]), "{front}", front)
	}
	many := fillLine.FindSubmatch(source)
	if many != nil {
		with["database.url"] = testenv.Postgres(t)
	}
	s := rig.NewUp(t, rig.DataDir(t), with, arguments...).StartReady()
	if many != nil {
		fill(t, with["database.url"], string(many[1]), string(many[2]))
	}
	var link string
	s.Await("the link to sign in", func() error {
		if link = linkLine.FindString(s.Run.Stdout.String()); link == "" {
			return errors.New("the banner has none")
		}
		return nil
	})

	ctx, cancel := context.WithTimeout(t.Context(), storyWithin)
	defer cancel()
	node := exec.CommandContext(ctx, "node", "--test", "--test-reporter=spec", file)
	node.SysProcAttr = testenv.ChildAttr(syscall.SIGTERM)
	secrets := filepath.Join(t.TempDir(), "secrets")
	node.Env = append(os.Environ(), "SLUICE_SECRETS="+secrets, "SLUICE_FRONT="+front,
		"SLUICE_URL="+s.Admin, "SLUICE_GATEWAY="+s.Traffic, "SLUICE_KEY="+s.AdminKey(), "SLUICE_LINK="+link,
		"SLUICE_UPSTREAM=http://"+testenv.Origin(t, rig.Echo), "SLUICE_CHROMIUM="+chromium, "SLUICE_DATA="+s.Settings["data_dir"],
	)
	if out, err := node.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	} else if testing.Verbose() {
		t.Logf("%s", out)
	}
	if found, err := os.ReadFile(secrets); err == nil { // checked at the end, as those of the rig
		for secret := range strings.FieldsSeq(string(found)) {
			rig.Plant(secret)
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// fill writes APIs, and keys of one policy, into the database: lists show them, and gateways
// do not know them.
func fill(t *testing.T, dsn, apis, keys string) {
	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	for _, statement := range []string{
		`insert into apis (id, org_id, name, domain, listen_path, routed, definition)
		select 'a' || i, org.id, 'API ' || i, '', '/a' || i, true, json_build_object('api_id', 'a' || i, 'name', 'API ' || i, 'org_id', org.id,
			'use_keyless', i % 2 = 0, 'proxy', json_build_object('listen_path', '/a' || i || '/', 'target_url', 'http://up.example'))
		from (select org_id as id from users limit 1) org, generate_series(1, ` + apis + `) i`,
		`insert into policies (id, org_id, name, state, apis, body)
		select 'many', org_id, 'Many', 'active', '{a1}', '{"id":"many","name":"Many","rate":10,"per":1,"access_rights":{"a1":{"api_id":"a1"}}}' from users limit 1`,
		`alter table keys disable trigger user`, // gateways are not told
		`insert into keys (key_hash, org_id, alias, active, apis, policies, body)
		select encode(sha256(i::text::bytea), 'hex'), org.id, 'key' || lpad(i::text, 6, '0'), true, '{}', '{many}',
			json_build_object('org_id', org.id, 'alias', 'key' || lpad(i::text, 6, '0'), 'apply_policies', array['many'])
		from (select org_id as id from users limit 1) org, generate_series(1, ` + keys + `) i`,
		`alter table keys enable trigger user`,
		`vacuum analyze`,
	} {
		if _, err := db.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
