package supervise

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// maxLine bounds a line of a child's output, in bytes; longer ones are cut.
const maxLine = 64 << 10

// process is a started child with its pipes. Its goroutines end after it has exited and its output is read.
type process struct {
	cmd      *exec.Cmd
	lifeline *os.File // our end: closing it tells the child that we are gone
	wg       sync.WaitGroup
}

// start runs c in a process group of its own, so that a terminal's Ctrl-C reaches only the supervisor.
func start(c Child, out chan<- news) (_ *process, err error) {
	var pipes [6]*os.File
	defer func() {
		for _, f := range pipes {
			if err != nil && f != nil {
				_ = f.Close()
			}
		}
	}()
	for i := 0; i < len(pipes); i += 2 {
		if pipes[i], pipes[i+1], err = os.Pipe(); err != nil {
			return nil, err
		}
	}
	lifeR, lifeW, statR, statW, errR, errW := pipes[0], pipes[1], pipes[2], pipes[3], pipes[4], pipes[5]
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env = c.Env
	cmd.Stdout, cmd.Stderr = errW, errW
	cmd.ExtraFiles = []*os.File{lifeR, statW}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err = cmd.Start(); err != nil {
		return nil, err
	}
	for _, f := range []*os.File{lifeR, statW, errW} { // the child's
		_ = f.Close()
	}
	p := &process{cmd: cmd, lifeline: lifeW}
	var readers sync.WaitGroup
	readers.Go(func() {
		defer statR.Close()
		lines(statR, func(b []byte) {
			var s Status
			if json.Unmarshal(b, &s) == nil {
				out <- news{child: c.Name, status: &s}
			}
		})
	})
	readers.Go(func() {
		defer errR.Close()
		lines(errR, func(b []byte) {
			s := string(b)
			out <- news{child: c.Name, line: &s}
		})
	})
	p.wg.Go(func() {
		err := cmd.Wait()
		readers.Wait() // what it said before it ended comes before its end
		x := exit{code: cmd.ProcessState.ExitCode(), text: cmd.ProcessState.String()}
		if err != nil && x.text == "" {
			x.text = fmt.Sprint(err)
		}
		out <- news{child: c.Name, exit: &x}
	})
	return p, nil
}

// lines calls f with each line of r, cut at maxLine, until r ends.
func lines(r io.Reader, f func([]byte)) {
	br := bufio.NewReaderSize(r, maxLine)
	for {
		b, long, err := br.ReadLine()
		if err != nil {
			return
		}
		f(b)
		for long {
			if _, long, err = br.ReadLine(); err != nil {
				return
			}
		}
	}
}

func (p *process) pid() int {
	if p == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

func (p *process) terminate() {
	if p != nil {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
}

// kill ends the whole process group.
func (p *process) kill() {
	if p != nil {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// release closes what is left of an exited process and waits for its goroutines.
func (p *process) release() {
	p.wg.Wait()
	_ = p.lifeline.Close()
}
