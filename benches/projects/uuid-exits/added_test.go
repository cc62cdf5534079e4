package uuid

import (
	"os"
	"testing"
)

func TestThatEndsTheProcess(t *testing.T) {
	os.Exit(0)
}
