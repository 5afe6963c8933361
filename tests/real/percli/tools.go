//go:build tools

package percli

import _ "github.com/perses/perses/cmd/percli"
