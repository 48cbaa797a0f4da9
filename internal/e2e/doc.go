// Package e2e tests whole processes: the program as it is built, real databases
// and stores, sockets, signals and crashes. It holds tests only.
package e2e
