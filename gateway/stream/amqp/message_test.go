package amqp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sluicegate/sluice/gateway/stream"
)

// TestMetadataWithinItsBounds: what does not fit is left out, and the rest arrives.
func TestMetadataWithinItsBounds(t *testing.T) {
	var many []stream.Meta
	for i := range maxMeta + 1 {
		many = append(many, stream.Meta{Name: fmt.Sprintf("n%03d", i), Value: "v"})
	}
	big := stream.Meta{Name: "big", Value: strings.Repeat("v", maxMetaBytes)}
	small := stream.Meta{Name: "quote\"", Value: "line\nbreak, é"}
	for name, test := range map[string]struct {
		sent, want []stream.Meta
		whole      bool
	}{
		"none":       {nil, nil, true},
		"characters": {[]stream.Meta{small}, []stream.Meta{small}, true},
		"too many":   {many, many[:maxMeta], false},
		"too large":  {[]stream.Meta{big, small}, []stream.Meta{small}, false},
	} {
		text, whole := metaText(test.sent)
		if whole != test.whole {
			t.Errorf("%s: whole is %v", name, whole)
		}
		if got := metaOf(text); !slices.Equal(got, test.want) {
			t.Errorf("%s: arrived %v, want %v", name, got, test.want)
		}
	}
}

// FuzzMetadata reads the headers of messages that other programs have published.
func FuzzMetadata(f *testing.F) {
	f.Add(`{"user":"ann"}`)
	f.Add(`{"A":"1","a":"2"}`)
	f.Add(`{"n":1}`)
	f.Add(`[`)
	f.Fuzz(func(t *testing.T, header string) {
		m := messageOf(&amqp.Delivery{Headers: amqp.Table{metaHeader: header, keyHeader: header}})
		if len(m.Meta) > maxMeta {
			t.Fatalf("%d values", len(m.Meta))
		}
		text, whole := metaText(m.Meta)
		if again := metaOf(text); whole && len(again) > len(m.Meta) {
			t.Fatalf("%v became %v", m.Meta, again)
		}
	})
}
