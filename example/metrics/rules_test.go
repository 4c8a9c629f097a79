package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/bellwether-cache/bellwether/internal/redistest"
)

// oncall is the document whose metrics and alerts these are.
func oncall(t *testing.T) string {
	text, err := os.ReadFile("../../docs/oncall.md")
	require.NoError(t, err)
	return string(text)
}

type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// rules reads the alerts as Prometheus does.
func rules(t *testing.T) []rule {
	_, text, ok := strings.Cut(oncall(t), "```yaml\n")
	require.True(t, ok)
	text, _, ok = strings.Cut(text, "```")
	require.True(t, ok)
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&file))
	require.Len(t, file.Groups, 1)
	return file.Groups[0].Rules
}

// An alert on a name that isn't exported never fires, and nobody notices.
func TestTheAlertsThatTheDocumentsNameHaveTheirMetrics(t *testing.T) {
	samples := serve(t, redistest.Start(t).Addr, 0).scrape()
	selector := regexp.MustCompile(`(bellwether_\w+)(?:\{(\w+)(=~?)"([^"]*)"\})?`)
	require.GreaterOrEqual(t, len(rules(t)), 4)
	for _, r := range rules(t) {
		assert.Contains(t, []string{"page", "ticket"}, r.Labels["severity"], r.Alert)
		assert.NotEmpty(t, r.Annotations["summary"], r.Alert)
		_, err := time.ParseDuration(r.For)
		require.NoError(t, err, r.Alert)
		found := selector.FindAllStringSubmatch(r.Expr, -1)
		assert.NotEmpty(t, found, r.Alert)
		assert.Equal(t, len(found), strings.Count(r.Expr, "bellwether_"))
		for _, s := range found {
			values := []string{s[4]}
			if s[3] == "=~" {
				values = strings.Split(s[4], "|")
			}
			for _, value := range values {
				pattern := s[1] + `(\{.*\})?`
				if s[2] != "" {
					pattern = s[1] + `\{(.*,)?` + s[2] + `="` + value + `"(,.*)?\}`
				}
				assert.True(t, exported(samples, pattern), "%s: nothing is exported that %s would match", r.Alert, s[0])
			}
		}
	}
}

func exported(samples map[string]float64, pattern string) bool {
	re := regexp.MustCompile("^" + pattern + "$")
	for sample := range samples {
		if re.MatchString(sample) {
			return true
		}
	}
	return false
}

// So do the metrics and label values that the tables mention, which leave the prefix out.
func TestTheMetricsThatTheTablesMentionAreExported(t *testing.T) {
	samples := serve(t, redistest.Start(t).Addr, 0).scrape()
	mention := regexp.MustCompile("`(?:(\\w+_(?:total|count|ratio|keys|connected|seconds))(?:\\{[^}]*\\})?|\\w+=\"[^\"`]*\")`")
	metrics := 0
	for _, m := range mention.FindAllStringSubmatch(oncall(t), -1) {
		if m[1] == "" {
			assert.True(t, exported(samples, `.*[{,]`+strings.Trim(m[0], "`")+`[,}].*`), m[0])
			continue
		}
		metrics++
		assert.True(t, exported(samples, "bellwether_"+m[1]+`(_count)?(\{.*\})?`), m[0])
		for _, label := range regexp.MustCompile(`\w+="[^"]*"`).FindAllString(m[0], -1) {
			assert.True(t, exported(samples, "bellwether_"+m[1]+`\{(.*,)?`+label+`(,.*)?\}`), m[0])
		}
	}
	assert.Greater(t, metrics, 10)
}
