-- KEYS entries, fences; ARGV memory in ms, channel, message, ago in ms (0 to delete all there is).
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local kind = redis.call('TYPE', KEYS[2]).ok
local function number(field) return kind == 'hash' and tonumber(redis.call('HGET', KEYS[2], field) or '') end
local last, bar = number('last'), number('bar')
local known = last and bar and last < now + 1e15 and bar <= last -- decades ahead: not ours
local n = now
if known and last >= n then n = last + 1 end
local taken = string.format('%.0f', n)
local memory = math.max(tonumber(ARGV[1]), redis.call('PTTL', KEYS[2]))
if ARGV[4] == '0' or redis.call('TYPE', KEYS[1]).ok ~= 'hash' then
  redis.call('DEL', KEYS[1])
else -- a deletion that comes late leaves what began after it
  local due = now - tonumber(ARGV[4]) * 1000
  for _, schema in ipairs(redis.call('HKEYS', KEYS[1])) do
    local fence = tonumber(string.sub(redis.call('HGET', KEYS[1], schema), 1, 16)) or 0
    if fence <= due then redis.call('HDEL', KEYS[1], schema) end
  end
end
if ARGV[4] ~= '0' and known then
  n = math.max(now - tonumber(ARGV[4]) * 1000, bar)
  for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do -- what failed is to be tried again
    if string.match(field, '^until:') or string.match(field, '^error:') then redis.call('HDEL', KEYS[2], field) end
  end
else
  redis.call('DEL', KEYS[2])
end
-- A full server still deletes. If it can't take the new number, it must forget the name, which refuses as much.
if type(redis.pcall('HSET', KEYS[2], 'last', taken, 'bar', string.format('%.0f', n))) == 'number' then
  redis.call('PEXPIRE', KEYS[2], string.format('%.0f', memory))
else
  redis.call('DEL', KEYS[2])
end
redis.pcall('PUBLISH', ARGV[2], ARGV[3])
return string.format('%.0f', now)
