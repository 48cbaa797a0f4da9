package object

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"reflect"
)

// ErrPacked says that bytes are not what Pack wrote.
var ErrPacked = errors.New("not a packed object")

// Pack appends a struct to b in a form that Unpack of the same release reads: it
// is for memory, not for disks. What is not set takes no room.
func Pack[T any](b []byte, from *T) []byte { return pack(b, reflect.ValueOf(from).Elem()) }

// pack appends a value of one of the kinds that definitions consist of. Every
// value takes at least one byte.
func pack(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.String:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		return append(b, v.String()...)
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Float64:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Float()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return binary.AppendVarint(b, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return binary.AppendUvarint(b, v.Uint())
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, 0)
		}
		return pack(append(b, 1), v.Elem())
	case reflect.Struct:
		return packStruct(b, v)
	case reflect.Slice:
		return packSlice(b, v)
	case reflect.Map:
		return packMap(b, v)
	}
	panic("object: pack: a field of type " + v.Type().String()) // the contract's own types are tested
}

// packStruct appends which fields are set, and these.
func packStruct(b []byte, v reflect.Value) []byte {
	set, n := uint64(0), v.NumField()
	for i := range n {
		if !v.Field(i).IsZero() {
			set |= 1 << i
		}
	}
	b = binary.AppendUvarint(b, set)
	for i := range n {
		if set&(1<<i) != 0 {
			b = pack(b, v.Field(i))
		}
	}
	return b
}

// packSlice appends one more than how many elements there are, or 0 for nil, and
// the elements.
func packSlice(b []byte, v reflect.Value) []byte {
	if v.IsNil() {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(v.Len())+1)
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return append(b, v.Bytes()...)
	}
	for i := range v.Len() {
		b = pack(b, v.Index(i))
	}
	return b
}

func packMap(b []byte, v reflect.Value) []byte {
	if v.IsNil() {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(v.Len())+1)
	for each := v.MapRange(); each.Next(); {
		b = pack(pack(b, each.Key()), each.Value())
	}
	return b
}

// Unpack replaces *into by what Pack wrote. Its strings are parts of data. After an
// error, which is ErrPacked, *into is undefined.
func Unpack[T any](data string, into *T) error {
	u := unpacker{rest: data}
	*into = *new(T)
	u.value(reflect.ValueOf(into).Elem())
	if u.failed || u.rest != "" {
		return ErrPacked
	}
	return nil
}

type unpacker struct {
	rest   string
	failed bool
}

// take takes n bytes off, or fails.
func (u *unpacker) take(n uint64) string {
	if n > uint64(len(u.rest)) {
		u.rest, u.failed = "", true
		return ""
	}
	taken := u.rest[:n]
	u.rest = u.rest[n:]
	return taken
}

func (u *unpacker) byte() byte {
	if b := u.take(1); b != "" {
		return b[0]
	}
	return 0
}

func (u *unpacker) uvarint() (n uint64) {
	for shift := 0; shift < 64; shift += 7 {
		b := u.byte()
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
	u.failed = true
	return 0
}

func (u *unpacker) varint() int64 {
	n := u.uvarint()
	return int64(n>>1) ^ -int64(n&1)
}

func (u *unpacker) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(u.take(u.uvarint()))
	case reflect.Bool:
		v.SetBool(u.byte() == 1)
	case reflect.Float64:
		if bits := u.take(8); bits != "" {
			v.SetFloat(math.Float64frombits(binary.LittleEndian.Uint64([]byte(bits))))
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(u.varint())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(u.uvarint())
	case reflect.Pointer:
		if u.byte() == 1 {
			v.Set(reflect.New(v.Type().Elem()))
			u.value(v.Elem())
		}
	case reflect.Struct:
		u.fields(v)
	case reflect.Slice:
		u.items(v)
	case reflect.Map:
		u.entries(v)
	}
}

// openUnknown is Unknown with fields that can be set by reflection.
type openUnknown struct {
	Members map[string]json.RawMessage
	Empty   uint64
}

func (u *unpacker) fields(v reflect.Value) {
	if v.Type() == unknownType {
		var open openUnknown
		u.fields(reflect.ValueOf(&open).Elem())
		*v.Addr().Interface().(*Unknown) = Unknown{members: open.Members, empty: open.Empty}
		return
	}
	set := u.uvarint()
	for i := range v.NumField() {
		if set&(1<<i) != 0 {
			u.value(v.Field(i))
		}
	}
}

// count reads how many elements follow; false says that there is nil. No more
// can follow than there are bytes.
func (u *unpacker) count() (int, bool) {
	n := u.uvarint()
	if n == 0 || u.failed {
		return 0, false
	}
	if n-1 > uint64(len(u.rest)) {
		u.failed = true
		return 0, false
	}
	return int(n - 1), true
}

func (u *unpacker) items(v reflect.Value) {
	n, there := u.count()
	if !there {
		return
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes([]byte(u.take(uint64(n))))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := 0; i < n && !u.failed; i++ {
		u.value(v.Index(i))
	}
}

func (u *unpacker) entries(v reflect.Value) {
	n, there := u.count()
	if !there {
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), n))
	key, element := v.Type().Key(), v.Type().Elem()
	for i := 0; i < n && !u.failed; i++ {
		k, e := reflect.New(key).Elem(), reflect.New(element).Elem()
		u.value(k)
		u.value(e)
		v.SetMapIndex(k, e)
	}
}
