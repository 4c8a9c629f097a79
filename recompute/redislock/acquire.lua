-- KEYS lock, mark[, fence, queue]; ARGV token, ttl in ms[, ttl of the fence in ms ('' for none), and if the process has waiters: its name,
-- the µs that the first of them has waited, and that the second has ('' for none)].
-- Returns 1 granted, {1, its number} if it has one, 0 taken back meanwhile, or 2 + the time in ms for which another has it, if not extended.
local numbered, waiter = (ARGV[3] or '') ~= '', ARGV[4] or ''
-- Whose turn it is to be woken: by the server's clock, as those of processes differ. Where that may not be kept, everybody is.
local function queue(waited)
  if waiter == '' or waited == '' then return end
  local time = redis.call('TIME')
  redis.pcall('ZADD', KEYS[4], 'NX', string.format('%.0f', time[1] * 1000000 + time[2] - waited), waiter)
  redis.pcall('PEXPIRE', KEYS[4], 60000) -- who still waits then has asked again, and is in it again
end
local found = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3] or KEYS[1]) -- what is no string is as nothing, and nobody's
local holder, taken, last = found[1], found[2], found[3]
local fence = numbered and string.match(last or '', '^%d+$') and tonumber(last)
if fence and fence > 9007199254740990 then fence = nil end -- nobody can have been granted that, and it would be the last for ever
if holder == ARGV[1] then -- our own earlier try, whose reply was lost
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  if not numbered then return 1 end
  if fence then return {1, fence} end
elseif holder then
  local left = redis.call('PTTL', KEYS[1])
  if left ~= -1 then -- a lease always has a TTL: what stands there without one is none
    queue(ARGV[5])
    return 2 + math.max(left, 0)
  end
end
if taken then return 0 end
if numbered then
  -- By the clock it is higher than before even where data was lost, by the last one even where the clock went back.
  local time = redis.call('TIME')
  fence = math.max((fence or 0) + 1, time[1] * 1000000 + time[2])
  redis.call('SET', KEYS[3], string.format('%.0f', fence), 'PX', ARGV[3]) -- a mere concatenation would round it
end
queue(ARGV[6]) -- the process has more who wait
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) -- last of what can fail: it leaves no lease
if numbered then return {1, fence} end
return 1
