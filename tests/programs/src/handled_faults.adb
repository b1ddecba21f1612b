--  SPDX-License-Identifier: MIT
--  A load without a check, whose fault the runtime turns into an exception that is handled in the
--  same function.
with Ada.Text_IO;

procedure Handled_Faults is
   type Pointer is access Integer;

   function Load (P : Pointer) return Integer;
   pragma No_Inline (Load);

   function Load (P : Pointer) return Integer is
   begin
      return P.all;
   exception
      when others => return -1;
   end Load;

   Sum : Integer := 0;
   Word : constant Pointer := new Integer'(5);
begin
   for I in 1 .. 100 loop
      Sum := Sum + Load (if I mod 10 = 0 then null else Word);
   end loop;
   Ada.Text_IO.Put_Line (Integer'Image (Sum));
end Handled_Faults;
