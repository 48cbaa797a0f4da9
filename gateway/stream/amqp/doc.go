// Package amqp connects streams to message brokers that speak AMQP 0-9-1, such as RabbitMQ.
//
// Connections are shared: a Pool opens one for publishing and one for consuming to each
// broker, and another when 1,000 connectors use it. Each connector has a channel of its own,
// for as long as that works: an epoch. When it ends, for whatever reason, the next one
// begins after a pause, and an output sends again what the broker has not confirmed.
package amqp
