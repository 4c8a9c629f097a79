-- KEYS fences; ARGV schema, fence, pause in ms, text, channel, head of the message.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local fence = tonumber(ARGV[2])
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then return 0 end
local bar = tonumber(redis.call('HGET', KEYS[1], 'bar') or '')
local of = tonumber(redis.call('HGET', KEYS[1], 'of:' .. ARGV[1]) or '') or 0
if not (bar and bar <= fence and of <= fence) then return 0 end -- a write or deletion came later
if ARGV[3] ~= '0' then
  local until_ = now + tonumber(ARGV[3]) * 1000
  redis.call('HSET', KEYS[1], 'until:' .. ARGV[1], string.format('%.0f', until_), 'error:' .. ARGV[1], ARGV[4])
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
end
redis.pcall('PUBLISH', ARGV[5], ARGV[6] .. string.format('%016.0f', now) .. ARGV[4])
return 1
