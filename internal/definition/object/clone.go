package object

import "reflect"

// Clone returns a deep copy: nothing that is reached through it is shared.
func Clone[T any](from *T) *T {
	if from == nil {
		return nil
	}
	to := new(T)
	copyInto(reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem())
	return to
}

// copyInto copies a value of one of the kinds that definitions consist of.
func copyInto(to, from reflect.Value) {
	switch from.Kind() {
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			copyInto(to.Elem(), from.Elem())
		}
	case reflect.Struct:
		to.Set(from)
		if from.Type() == unknownType {
			return // its members are never written to once they are read
		}
		for i := range from.NumField() {
			if field := to.Field(i); field.CanSet() { // others are no members
				copyInto(field, from.Field(i))
			}
		}
	case reflect.Slice:
		if from.IsNil() {
			return
		}
		to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
		if from.Type().Elem().Kind() == reflect.Uint8 {
			reflect.Copy(to, from)
			return
		}
		for i := range from.Len() {
			copyInto(to.Index(i), from.Index(i))
		}
	case reflect.Map:
		if from.IsNil() {
			return
		}
		to.Set(reflect.MakeMapWithSize(from.Type(), from.Len()))
		for each := from.MapRange(); each.Next(); {
			element := reflect.New(from.Type().Elem()).Elem()
			copyInto(element, each.Value())
			to.SetMapIndex(each.Key(), element)
		}
	default:
		to.Set(from)
	}
}
