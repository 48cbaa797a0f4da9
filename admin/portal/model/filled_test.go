package model

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// hollow returns a record in which every object is there, and every list and map is
// absent or, where its items are records, holds one hollow item.
func hollow(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).Tag.Get("json") != "-" {
				v.Field(i).Set(hollow(t.Field(i).Type))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(hollow(t.Elem()))
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			v.Set(reflect.Append(v, hollow(t.Elem())))
		}
	case reflect.Map:
		if t.Elem().Kind() == reflect.Slice && t.Elem().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeMap(t))
			v.SetMapIndex(reflect.ValueOf("one"), reflect.Zero(t.Elem()))
		}
	}
	return v
}

func write[T kind](t *testing.T) {
	t.Helper()
	record := hollow(reflect.TypeFor[T]()).Interface().(T)
	before, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(before, []byte("null")) {
		t.Fatalf("nothing is left out: %s", before)
	}
	body, err := Write(&record)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(body, []byte("null")) {
		t.Errorf("%T has null where there is a list: %s", record, body)
	}
	if after, _ := json.Marshal(record); !bytes.Equal(before, after) {
		t.Errorf("writing changed the record to %s", after)
	}
}

func TestListsThatWereLeftOutAreWrittenEmpty(t *testing.T) {
	write[Developer](t)
	write[Entry](t)
	write[Configuration](t)
	write[KeyRequest](t)
}
