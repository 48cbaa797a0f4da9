// Command amqp is the least of a bridge from HTTP to a message broker: fasthttp's server, a
// channel of amqp091-go in confirm mode, and nothing else. A request is answered once the
// broker has confirmed its body. Event streams are measured against it.
package main

import (
	"flag"
	"log"
	"net"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/valyala/fasthttp"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:9001", "`address` to listen on")
	broker := flag.String("broker", "127.0.0.1:5672", "`address` of the broker")
	exchange := flag.String("exchange", "", "`name` of the exchange")
	topic := flag.String("topic", "", "`routing key` of messages")
	flag.Parse()
	conn, err := amqp.Dial("amqp://" + *broker + "/")
	if err != nil {
		log.Fatalf("connecting: %v", err)
	}
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		log.Fatalf("opening a channel: %v", err)
	}
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatalf("listening: %v", err)
	}
	server := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		confirmed, err := ch.PublishWithDeferredConfirm(*exchange, *topic, false, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, Body: ctx.PostBody(), // which is written before it returns
		})
		if err != nil || !confirmed.Wait() {
			ctx.Error("not confirmed", fasthttp.StatusServiceUnavailable)
		}
	}}
	log.Fatalf("serving: %v", server.Serve(ln))
}
