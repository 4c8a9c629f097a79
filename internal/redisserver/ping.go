package redisserver

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"time"
)

// answers reports whether the server on addr answers PING and is the process meant. The second half matters when another server
// took the port first: ours then lives a few milliseconds more, while the other one says PONG.
//
// It speaks plain TCP, since go-redis has its doors elsewhere.
func answers(addr string, pid int) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second)) // can't fail on an open connection; if it did, the reads would tell

	r := bufio.NewReader(c)
	switch pong := ask(c, r, "PING"); {
	case strings.HasPrefix(pong, "-NOAUTH"): // --requirepass: up, and asked to tell strangers nothing more
		return true
	case pong != "+PONG": // nothing, or -LOADING
		return false
	}
	if ask(c, r, "INFO server") == "" {
		return false
	}
	for mine := fmt.Sprintf("process_id:%d", pid); ; {
		line, err := r.ReadString('\n')
		if strings.TrimSpace(line) == mine {
			return true
		}
		if err != nil || strings.HasPrefix(line, "process_id:") {
			return false
		}
	}
}

// ask sends one command and returns the first line of the answer, "" when there was none.
func ask(c net.Conn, r *bufio.Reader, command string) string {
	if _, err := fmt.Fprintf(c, "%s\r\n", command); err != nil {
		return ""
	}
	line, _ := r.ReadString('\n')
	return strings.TrimSpace(line)
}
