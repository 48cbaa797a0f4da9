package config

import (
	"fmt"

	"github.com/sluicegate/sluice/internal/dialguard"
)

// Streaming holds the settings of event streams (x-svc-streaming in definitions).
type Streaming struct {
	// Run event streams. It is needed in the gateways, and in the admin, which manages them
	// at /api/apis/streams. Without it definitions with streams are loaded, and their paths
	// answer 404. The default is true with `up`.
	Enabled bool `yaml:"enabled"`
	// What addresses of message brokers without a scheme stand for: amqp, or kafka.
	DefaultScheme string `yaml:"default_scheme" oneof:"amqp kafka" required:"true"`
	// Networks, addresses and host names that connectors of streams may call although they
	// are private, such as 10.0.0.0/8 or broker.internal. Others are called at public
	// addresses alone; link-local and metadata addresses are never called. The default is
	// loopback with `up`.
	AllowAddresses []string `yaml:"allow_addresses"`
	// Memory for messages of all streams that are on their way. Beyond it no more are
	// taken in.
	MaxMemory Bytes `yaml:"max_memory" range:"1MiB..64GiB"`
	// Streams that one gateway runs. An API that would have more is not served.
	MaxStreams int `yaml:"max_streams" range:"1..1000000"`
	// Keep the messages of the in-process broker (inproc://) in data_dir, so that those that
	// were acknowledged outlive a crash. Otherwise they are kept in memory.
	Journal bool `yaml:"journal"`
}

func defaultStreaming() Streaming {
	return Streaming{DefaultScheme: "amqp", MaxMemory: 256 << 20, MaxStreams: 20_000, Journal: true}
}

// ofUp changes the defaults to those of `up`, where everything is on one machine.
func (s *Streaming) ofUp() { s.Enabled, s.AllowAddresses = true, []string{"127.0.0.0/8", "::1"} }

func checkAllowAddresses(c *Config) (key, message string) {
	if _, err := dialguard.ParseAllowed(c.Streaming.AllowAddresses); err != nil {
		return "streaming.allow_addresses", fmt.Sprint(err)
	}
	return "", ""
}
