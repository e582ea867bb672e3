package main

import (
	"net"
	"time"
)

// helloStart is the head of a TLS record that announces a ClientHello of 512 bytes, which never follows.
var helloStart = []byte{22, 3, 1, 2, 0, 1}

// stall opens connections that begin a TLS handshake and stop.
func stall(address string, count int) ([]net.Conn, error) {
	held := make([]net.Conn, 0, count)
	for range count {
		connection, err := net.DialTimeout("tcp", address, 10*time.Second)
		if err != nil {
			return held, err
		}
		if _, err := connection.Write(helloStart); err != nil {
			return held, err
		}
		held = append(held, connection)
	}
	return held, nil
}

// closeAll is deferred until after the load: the garbage collector closes a connection that nothing refers to.
func closeAll(held []net.Conn) {
	for _, connection := range held {
		connection.Close()
	}
}
