package dds

import "strings"

// Obstacles says which settings of an environment keep ROS 2 off the overlay, in
// plain sentences.
func Obstacles(getenv func(string) string) []string {
	var out []string
	if v := getenv("ROS_LOCALHOST_ONLY"); v != "" && v != "0" {
		out = append(out, "ROS_LOCALHOST_ONLY is set, so ROS 2 talks to this machine only: unset ROS_LOCALHOST_ONLY")
	}
	if v := strings.ToUpper(getenv("ROS_AUTOMATIC_DISCOVERY_RANGE")); v == "LOCALHOST" || v == "OFF" {
		out = append(out, "ROS_AUTOMATIC_DISCOVERY_RANGE is "+v+", so ROS 2 finds nobody on other machines: unset ROS_AUTOMATIC_DISCOVERY_RANGE")
	}
	return out
}
