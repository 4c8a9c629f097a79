-- KEYS marker; ARGV the marker as it was seen. Returns 1 the server has a vote from now on, 0 it is another than was seen.
local marker = redis.call('MGET', KEYS[1])[1]
local founded = string.match(ARGV[1], '^%w* ') .. '0 '
if marker == ARGV[1] then redis.call('SET', KEYS[1], founded .. string.match(ARGV[1], '(%d+)%??$')) end
if marker == ARGV[1] or marker and string.sub(marker, 1, #founded) == founded then return 1 end
return 0
