package layers

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// The budgets.
const (
	maxFunction   = 80 // lines, from func to the closing brace
	maxNesting    = 4  // if, for, switch and select inside each other
	maxParameters = 5
)

// exceptions are what may break a rule: "<package>: <what>", as the message
// begins, with the reason.
var exceptions = map[string]string{
	"internal/definition/object: layouts": "remembers what reflection says about a type, which never changes",
}

// A finding is one break of a rule.
type finding struct {
	subject string // "<package>: <what>"
	problem string
}

// findings holds a package against every rule of style.
func findings(f folder) []finding {
	handwritten := f
	handwritten.files = slices.DeleteFunc(slices.Clone(f.files), ast.IsGenerated)
	if len(handwritten.files) == 0 {
		return nil
	}
	rules := []func(folder) []finding{functions, signatures, comments, variables}
	var all []finding
	for _, rule := range rules {
		all = append(all, rule(handwritten)...)
	}
	return all
}

func (f folder) found(what, format string, args ...any) finding {
	return finding{subject: f.path + ": " + what, problem: fmt.Sprintf(format, args...)}
}

func (f folder) line(pos token.Pos) int { return f.fset.Position(pos).Line }

// functions measures the length and nesting of functions, and refuses init.
func functions(f folder) (all []finding) {
	f.eachDecl(func(decl ast.Decl) {
		name, body := declared(decl), ast.Node(decl)
		if fn, ok := decl.(*ast.FuncDecl); ok {
			if fn.Recv == nil && fn.Name.Name == "init" {
				all = append(all, f.found(name, "runs before main: make it a function that is called"))
			}
			if lines := f.line(fn.End()) - f.line(fn.Type.Pos()) + 1; lines > maxFunction {
				all = append(all, f.found(name, "%d lines; a function has at most %d", lines, maxFunction))
			}
		}
		if depth := nesting(body); depth > maxNesting {
			all = append(all, f.found(name, "blocks are nested %d deep; at most %d: return early, or move the inside out", depth, maxNesting))
		}
	})
	return all
}

func (f folder) eachDecl(do func(ast.Decl)) {
	for _, file := range f.files {
		for _, decl := range file.Decls {
			do(decl)
		}
	}
}

// declared names a declaration: "f", "T.f", or the first name of a group.
func declared(decl ast.Decl) string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if r := receiver(d); r != "" {
			return r + "." + d.Name.Name
		}
		return d.Name.Name
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				return s.Name.Name
			case *ast.ValueSpec:
				return s.Names[0].Name
			}
		}
	}
	return "import"
}

// receiver returns the name of a method's type, "" for a function.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	return rootName(fn.Recv.List[0].Type)
}

// rootName follows an expression to the identifier that it starts from.
func rootName(e ast.Expr) string {
	if id := rootIdent(e); id != nil {
		return id.Name
	}
	return ""
}

func rootIdent(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// nesting returns how many blocks are inside each other at most. An else-if is
// as deep as its if; a function literal goes on counting where it stands.
func nesting(n ast.Node) (deepest int) {
	ast.Inspect(n, func(inner ast.Node) bool {
		if inner == n {
			return true
		}
		switch s := inner.(type) {
		case *ast.IfStmt:
			deepest = max(deepest, 1+nesting(s.Body))
			if s.Else != nil {
				deepest = max(deepest, elseNesting(s.Else))
			}
			return false
		case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			deepest = max(deepest, 1+nesting(inner))
			return false
		}
		return true
	})
	return deepest
}

func elseNesting(stmt ast.Stmt) int {
	s, ok := stmt.(*ast.IfStmt)
	if !ok {
		return 1 + nesting(stmt)
	}
	deepest := 1 + nesting(s.Body)
	if s.Else != nil {
		deepest = max(deepest, elseNesting(s.Else))
	}
	return deepest
}

// signatures counts parameters of functions, literals and interface methods.
func signatures(f folder) (all []finding) {
	f.eachDecl(func(decl ast.Decl) {
		ast.Inspect(decl, func(n ast.Node) bool {
			if fn, ok := n.(*ast.FuncType); ok && fn.Params.NumFields() > maxParameters {
				all = append(all, f.found(declared(decl), "%d parameters; at most %d: some belong together in a type", fn.Params.NumFields(), maxParameters))
			}
			return true
		})
	})
	return all
}

// comments asks for a comment on the package and on each exported identifier.
func comments(f folder) (all []finding) {
	documented := false
	for _, file := range f.files {
		if file.Doc == nil {
			continue
		}
		documented = true
		if name := file.Name.Name; name != "main" && !strings.HasPrefix(file.Doc.Text(), "Package "+name+" ") {
			all = append(all, f.found("package", `its comment does not begin "Package %s "`, name))
		}
	}
	if !documented {
		all = append(all, f.found("package", "has no comment; say what its one job is"))
	}
	f.eachDecl(func(decl ast.Decl) {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
				all = append(all, f.named(declared(d), d.Name.Name, d.Doc)...)
			}
		case *ast.GenDecl:
			all = append(all, f.undocumented(d)...)
		}
	})
	return all
}

// named wants a comment that begins with the name, after an article perhaps.
func (f folder) named(what, name string, doc *ast.CommentGroup) []finding {
	if doc == nil {
		return []finding{f.found(what, "is exported and has no comment")}
	}
	text := doc.Text()
	for _, article := range []string{"A ", "An ", "The "} {
		text = strings.TrimPrefix(text, article)
	}
	after, ok := strings.CutPrefix(text, name)
	if next, _ := utf8.DecodeRuneInString(after); !ok || unicode.IsLetter(next) || unicode.IsDigit(next) || next == '_' {
		return []finding{f.found(what, "its comment does not begin with its name")}
	}
	return nil
}

// undocumented looks through types, constants and variables. A group's comment
// stands for its constants and variables; so does one at the end of the line.
func (f folder) undocumented(d *ast.GenDecl) (all []finding) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				all = append(all, f.named(s.Name.Name, s.Name.Name, first(s.Doc, d.Doc))...)
			}
		case *ast.ValueSpec:
			if first(s.Doc, d.Doc, s.Comment) == nil && slices.ContainsFunc(s.Names, (*ast.Ident).IsExported) {
				all = append(all, f.found(s.Names[0].Name, "is exported and has no comment"))
			}
		}
	}
	return all
}

func first(groups ...*ast.CommentGroup) *ast.CommentGroup {
	for _, g := range groups {
		if g != nil {
			return g
		}
	}
	return nil
}

// variables refuses package variables that change: those that any statement
// assigns to, and those whose type exists to change. Pools are excepted.
func variables(f folder) (all []finding) {
	pkg, uses := resolve(f)
	report := func(e ast.Expr) {
		id := rootIdent(e)
		if id == nil {
			return
		}
		if v, ok := uses[id].(*types.Var); ok && v.Parent() == pkg.Scope() {
			all = append(all, f.found(id.Name, "is a package variable and changes in %s; let a value own it", f.fset.Position(id.Pos())))
		}
	}
	f.eachDecl(func(decl ast.Decl) {
		if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.VAR {
			all = append(all, f.changeable(d)...)
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			for _, target := range changed(n) {
				report(target)
			}
			return true
		})
	})
	return all
}

// changed returns what a statement or call writes to.
func changed(n ast.Node) []ast.Expr {
	switch s := n.(type) {
	case *ast.AssignStmt:
		if s.Tok != token.DEFINE {
			return s.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{s.X}
	case *ast.RangeStmt:
		if s.Tok == token.ASSIGN {
			return slices.DeleteFunc([]ast.Expr{s.Key, s.Value}, func(e ast.Expr) bool { return e == nil })
		}
	case *ast.CallExpr:
		if name := rootName(s.Fun); len(s.Args) > 0 && (name == "delete" || name == "clear" || name == "copy") {
			return s.Args[:1]
		}
	}
	return nil
}

// changeable finds variables of types that are there to be changed.
func (f folder) changeable(d *ast.GenDecl) (all []finding) {
	for _, spec := range d.Specs {
		s, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		kinds := []ast.Expr{s.Type}
		for _, value := range s.Values {
			kinds = append(kinds, kindOf(value))
		}
		for _, kind := range kinds {
			if reason := mutable(kind); reason != "" {
				all = append(all, f.found(s.Names[0].Name, "is a package variable and a %s; let a value own it", reason))
			}
		}
	}
	return all
}

// kindOf returns the type that a value is written with, nil if it does not say.
func kindOf(value ast.Expr) ast.Expr {
	switch v := value.(type) {
	case *ast.UnaryExpr:
		return kindOf(v.X)
	case *ast.CompositeLit:
		return v.Type
	case *ast.CallExpr:
		if fn := rootName(v.Fun); (fn == "make" || fn == "new") && len(v.Args) > 0 {
			return v.Args[0]
		}
	}
	return nil
}

// mutable names a type whose values are there to be changed, else "".
func mutable(kind ast.Expr) string {
	switch k := kind.(type) {
	case *ast.StarExpr:
		return mutable(k.X)
	case *ast.IndexExpr:
		return mutable(k.X)
	case *ast.ChanType:
		return "channel"
	case *ast.SelectorExpr:
		name := rootName(k.X) + "." + k.Sel.Name
		if strings.HasPrefix(name, "atomic.") || strings.HasPrefix(name, "sync.") && name != "sync.Pool" {
			return name
		}
	}
	return ""
}

// resolve says which identifier means what, without loading what is imported:
// the scopes of the package are enough.
func resolve(f folder) (*types.Package, map[*ast.Ident]types.Object) {
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	conf := types.Config{Importer: nothing{}, Error: func(error) {}}
	pkg, _ := conf.Check(f.path, f.fset, f.files, info) // always complains: the types of other packages are unknown
	return pkg, info.Uses
}

// nothing imports every package as an empty one.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	pkg := types.NewPackage(path, filepath.Base(path))
	pkg.MarkComplete()
	return pkg, nil
}

func TestCodeKeepsToTheStyle(t *testing.T) {
	excused := make(map[string]bool)
	for _, f := range source(t) {
		for _, found := range findings(f) {
			if exceptions[found.subject] != "" {
				excused[found.subject] = true
				continue
			}
			t.Errorf("%s: %s", found.subject, found.problem)
		}
	}
	for subject := range exceptions {
		if !excused[subject] {
			t.Errorf("exception %q is not needed any more: take it away", subject)
		}
	}
}

func TestBreaksOfStyleAreFound(t *testing.T) {
	long := "// Package p is long.\npackage p\nfunc f() {" + strings.Repeat("\n", 80) + "}"
	for _, c := range []struct{ name, text, want string }{
		{"clean", "// Package p is clean.\npackage p\n\n// A T is.\ntype T int\n\n// F does.\nfunc F(a, b, c, d, e int) {}\n\nvar pool = sync.Pool{}\nvar errA = errors.New(\"a\")\n", ""},
		{"long function", long, "p: f: 81 lines"},
		{"no package comment", "package p\n", "p: package: has no comment"},
		{"other package comment", "// This is p.\npackage p\n", "p: package: its comment"},
		{"init", "// Package p is.\npackage p\nfunc init() {}", "p: init: runs before main"},
		{"method init", "// Package p is.\npackage p\ntype t int\nfunc (t) init() {}", ""},
		{"parameters", "// Package p is.\npackage p\nfunc f(a, b int, c, d string, e, f any) {}", "p: f: 6 parameters"},
		{"literal parameters", "// Package p is.\npackage p\nfunc f() { _ = func(a, b, c, d, e, f int) {} }", "p: f: 6 parameters"},
		{"no comment", "// Package p is.\npackage p\nfunc F() {}", "p: F: is exported"},
		{"method comment", "// Package p is.\npackage p\n// T is.\ntype T int\nfunc (t *T) M() {}", "p: T.M: is exported"},
		{"hidden method", "// Package p is.\npackage p\ntype t int\nfunc (t *t) M() {}", ""},
		{"other name", "// Package p is.\npackage p\n// Does it.\nfunc F() {}", "p: F: its comment"},
		{"longer name", "// Package p is.\npackage p\n// Fab does it.\nfunc Fa() {}", "p: Fa: its comment"},
		{"article", "// Package p is.\npackage p\n// A T's text.\ntype T int", ""},
		{"type comment", "// Package p is.\npackage p\ntype T int", "p: T: is exported"},
		{"constant", "// Package p is.\npackage p\nconst C = 1", "p: C: is exported"},
		{"constant group", "// Package p is.\npackage p\n// All of them.\nconst (\n C = 1\n D = 2\n)\nconst (\n E = 1 // e\n)", ""},
		{"nesting 4", nested(4), ""},
		{"nesting 5", nested(5), "p: f: blocks are nested 5 deep"},
		{"else if", "// Package p is.\npackage p\nfunc f(a int) { if a > 1 {} else if a > 2 {} else if a > 3 {} else if a > 4 {} else if a > 5 {} }", ""},
		{"assigned", "// Package p is.\npackage p\nvar v int\nfunc f() { v = 1 }", "p: v: is a package variable"},
		{"assigned field", "// Package p is.\npackage p\nvar v struct{ a []int }\nfunc f() { v.a[0]++ }", "p: v: is a package variable"},
		{"deleted", "// Package p is.\npackage p\nvar v = map[int]int{}\nfunc f() { delete(v, 1) }", "p: v: is a package variable"},
		{"shadowed", "// Package p is.\npackage p\nvar v int\nfunc f(v int) { v = 1 }\nfunc g() { v := 1; v++ }", ""},
		{"atomic", "// Package p is.\npackage p\nvar v atomic.Int64", "p: v: is a package variable and a atomic.Int64"},
		{"mutex", "// Package p is.\npackage p\nvar v = &sync.Mutex{}", "p: v: is a package variable and a sync.Mutex"},
		{"channel", "// Package p is.\npackage p\nvar v = make(chan int)", "p: v: is a package variable and a channel"},
		{"generated", "// Code generated by x. DO NOT EDIT.\n\npackage p\nfunc F() {}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all []string
			for _, found := range findings(parsed(t, "p", c.text)) {
				all = append(all, found.subject+": "+found.problem)
			}
			got := strings.Join(all, "\n")
			if (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

func nested(depth int) string {
	return "// Package p is.\npackage p\nfunc f() {" + strings.Repeat("for {", depth) + strings.Repeat("}", depth) + "}"
}

func TestVariablesAssignedInAnotherFileAreFound(t *testing.T) {
	found := findings(parsed(t, "p", "// Package p is.\npackage p\nvar v int", "package p\nfunc f() { v = 1 }"))
	if len(found) != 1 || found[0].subject != "p: v" {
		t.Errorf("found %v", found)
	}
}
