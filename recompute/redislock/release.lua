-- KEYS lock, mark[, queue]; ARGV token, channel ('' for none), message, mark in ms (0 for none).
-- Returns 1 released, 0 nobody holds it, -1 another does. With a mark, an acquire of this token that arrives later is refused:
-- also when one was granted before, as that may have been sent again.
local holder = redis.call('MGET', KEYS[1])[1] -- what is no string is as nothing
local ours = holder == ARGV[1]
if ours then redis.call('DEL', KEYS[1]) end -- first: a server out of memory permits it
if ARGV[4] ~= '0' then redis.pcall('SET', KEYS[2], '', 'PX', ARGV[4]) end
if ours then
  local turn = ''
  local next = KEYS[3] and redis.pcall('ZPOPMIN', KEYS[3], 2) or {} -- a pair: its name, since when it has waited
  if next[3] then -- the second stays; it asks should the first be dead
    redis.pcall('ZADD', KEYS[3], 'NX', next[4], next[3])
    redis.pcall('PEXPIRE', KEYS[3], 60000) -- as it may have been alone there
    turn = ',' .. next[3]
  end
  if ARGV[2] ~= '' then redis.pcall('PUBLISH', ARGV[2], ARGV[3] .. (next[1] or '') .. turn) end -- nobody's name wakes all
  return 1
end
if holder then return -1 end
return 0
